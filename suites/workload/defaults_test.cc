// The default config that a space declares is valid for every shape that a file
// or a workload lists, on the processors and GPUs that figures are of, on
// others and on this one. Where it is not, the nearest valid config stands in,
// which may have smaller register tiles and take twice as long, and nobody is
// told.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/workload/tasks.h"
#include "suites/workload/workload.h"

namespace optrail::suites {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

proto::Hardware Processor(const std::string& id, int cores, int64_t l1d_kib,
                          int64_t l2_kib, int64_t l3_mib, int simd_bits) {
  proto::Hardware hardware;
  hardware.set_id(id);
  hardware.set_device_kind(proto::CPU);
  hardware.set_cores(cores);
  hardware.set_l1d_bytes(l1d_kib << 10);
  hardware.set_l2_bytes(l2_kib << 10);
  hardware.set_l3_bytes(l3_mib << 20);
  hardware.set_memory_bytes(int64_t{16} << 30);
  hardware.set_simd_bits(simd_bits);
  return hardware;
}

std::vector<proto::Hardware> Processors() {
  std::vector<proto::Hardware> all = {
      // Those of docs/lab/measured.md, with as many cores as a run was given.
      Processor("intel-xeon-emerald-rapids-1c", 1, 48, 2048, 260, 512),
      Processor("intel-xeon-emerald-rapids-2c", 2, 48, 2048, 260, 512),
      Processor("intel-xeon-emerald-rapids-4c", 4, 48, 2048, 260, 512),
      Processor("intel-xeon-sapphire-rapids-2c", 2, 48, 2048, 105, 512),
      Processor("amd-epyc-zen5-1c", 1, 48, 1024, 32, 512),
      Processor("amd-epyc-zen5-2c", 2, 48, 1024, 32, 512),
      Processor("amd-epyc-zen5-4c", 4, 48, 1024, 32, 512),
      // Smaller caches and narrower vectors, as elsewhere.
      Processor("amd-epyc-zen4-2c", 2, 32, 1024, 32, 512),
      Processor("amd-zen3-8c", 8, 32, 512, 32, 256),
      Processor("intel-core-skylake-4c", 4, 32, 256, 8, 256),
      Processor("x86-64-2c", 2, 32, 256, 4, 128),
  };
  const auto here = ops::HardwareOf(proto::CPU);
  EXPECT_TRUE(here.ok()) << here.status();
  // Where a virtual machine hides its caches they are assumed, and the nearest
  // valid config takes the place of a default, with a note.
  if (here.ok() && here->has_l2_bytes()) all.push_back(*here);
  return all;
}

proto::Hardware Gpu(const std::string& id, int compute_capability,
                    int multiprocessors, int64_t shared_kib) {
  const auto type = ops::FindDeviceType(proto::CUDA);
  EXPECT_TRUE(type.ok()) << type.status();
  proto::Hardware hardware = (*type)->Declared();
  hardware.set_id(id);
  hardware.set_cores(multiprocessors);
  const std::map<std::string, int64_t> own = {
      {"compute_capability", compute_capability},
      {"multiprocessors", multiprocessors},
      {"shared_bytes_per_block", shared_kib << 10}};
  for (proto::HardwareAttribute& attribute : *hardware.mutable_attributes()) {
    const auto found = own.find(attribute.name());
    if (found != own.end()) attribute.set_int_(found->second);
  }
  return hardware;
}

std::vector<proto::Hardware> Gpus() {
  return {
      // The machine of docs/lab/measured.md.
      Gpu("nvidia-h200", 90, 132, 227),
      // Fewer multiprocessors, no copy engine, less shared memory.
      Gpu("nvidia-h100-pcie", 90, 114, 227),
      Gpu("nvidia-a100", 80, 108, 163),
      Gpu("nvidia-rtx-4090", 89, 128, 99),
  };
}

// Checks the defaults of the shapes files ("") or of a workload. Returns how
// many were looked at; none, if the device's kernels compute none of its types.
int ExpectValidDefaults(const std::string& workload,
                        const proto::Hardware& hardware) {
  TaskSelection selection;
  selection.device = hardware.device_kind();
  selection.workload = workload;
  selection.backend = kAllBackends;
  selection.threads = {1};
  if (hardware.device_kind() == proto::CPU && hardware.cores() > 1) {
    selection.threads.push_back(hardware.cores());
  }
  const auto tasks = SelectTasks(selection, hardware);
  if (absl::IsUnimplemented(tasks.status())) return 0;
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  if (!tasks.ok()) return 0;
  // Workloads and shapes files share layers.
  static auto* const seen = new std::set<std::string>;
  for (const TaskEntry& task : *tasks) {
    const std::string name = ShortTaskText(task.task) + " on " + hardware.id();
    if (!seen->insert(name).second) continue;
    SCOPED_TRACE(name);
    const auto space = BindTask(task, hardware);
    EXPECT_TRUE(space.ok()) << space.status();
    if (!space.ok()) continue;
    EXPECT_THAT(space->bound->notes(),
                Not(Contains(HasSubstr("the declared default"))));
  }
  return static_cast<int>(tasks->size());
}

TEST(Defaults, AreValidForEveryListedShape) {
  for (const proto::Hardware& hardware : Processors()) {
    EXPECT_GT(ExpectValidDefaults("", hardware), 100);
  }
  for (const proto::Hardware& hardware : Gpus()) {
    EXPECT_GT(ExpectValidDefaults("", hardware), 50);
  }
}

TEST(Defaults, AreValidForEveryLayerOfEveryWorkload) {
  for (const NamedFile& workload : EmbeddedWorkloads()) {
    for (const proto::Hardware& hardware : Processors()) {
      EXPECT_GT(ExpectValidDefaults(workload.name, hardware), 0);
    }
    for (const proto::Hardware& hardware : Gpus()) {
      ExpectValidDefaults(workload.name, hardware);
    }
  }
}

}  // namespace
}  // namespace optrail::suites
