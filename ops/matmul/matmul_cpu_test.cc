// How threads share a product out, beyond what the generated test samples.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

std::string ConfigText(const std::string& split, int tasks_per_thread) {
  return absl::StrCat(
      "mr=4,nr_vectors=1,k_unroll=4,m_tiles=2,n_tiles=2,kc=16,pack_a=true,"
      "pack_b=true,outer_loop=columns,stays_in_l1=b,prefetch_a=false,prefetch_"
      "steps=0,"
      "thread_split=",
      split, ",tasks_per_thread=", tasks_per_thread);
}

absl::StatusOr<std::unique_ptr<Runnable>> Load(const OperatorEntry& entry,
                                               const proto::Shape& shape,
                                               const proto::Config& config,
                                               Device& device) {
  const auto backend = entry.FindBackend(proto::CPU, "");
  if (!backend.ok()) return backend.status();
  return Runnable::Load(**backend, Artifact(), shape, config, device);
}

absl::Status RunOnce(const std::string& shape_text,
                     const std::string& config_text, int threads,
                     uint64_t seed) {
  const OperatorEntry* entry = Registry::Get().Find("matmul");
  const auto shape = tuning::ParseShape(shape_text);
  const auto config = tuning::ParseConfig(config_text);
  const auto device = MakeCpuDevice(threads);
  if (!shape.ok()) return shape.status();
  if (!config.ok()) return config.status();
  if (!device.ok()) return device.status();
  auto operands = CheckedOperands::Create(*entry->op, *shape, **device);
  if (!operands.ok()) return operands.status();
  auto runnable = Load(*entry, *shape, *config, **device);
  if (!runnable.ok()) return runnable.status();
  absl::Status status = (*operands)->Fill(seed);
  // Several calls: workspaces must come back.
  for (int call = 0; status.ok() && call < 5; ++call) {
    status = (*operands)->Arm();
    if (status.ok()) status = (*runnable)->Run((*operands)->addresses());
    if (status.ok()) status = (*operands)->Verify().status();
  }
  return status;
}

TEST(MatmulCpu, EverySplitComputesTheProduct) {
  for (const std::string split : {"rows", "columns", "grid", "depth"}) {
    for (const int threads : {1, 2, 3}) {
      for (const int tasks_per_thread : {1, 2, 4}) {
        for (const std::string shape :
             {"m=1,n=1,k=1/f32", "m=2,n=3,k=200/f32", "m=61,n=67,k=71/f32",
              "m=128,n=128,k=64/f32", "m=7,n=211,k=5/f32", "m=33,n=3,k=20/f32",
              "m=300,n=7,k=128/f32", "m=500,n=12,k=300/f32"}) {
          SCOPED_TRACE(absl::StrCat(shape, " ", split, " on ", threads, " x ",
                                    tasks_per_thread));
          const absl::Status status =
              RunOnce(shape, ConfigText(split, tasks_per_thread), threads, 1);
          EXPECT_TRUE(status.ok()) << status.message();
        }
      }
    }
  }
}

// The kernel is refused at Prepare, not found wrong or crashing in Run.
TEST(MatmulCpu, RefusesATileThatDoesNotExist) {
  std::string config = ConfigText("rows", 1);
  config.replace(config.find("mr=4"), 4, "mr=10");
  const absl::Status status = RunOnce("m=8,n=8,k=8/f32", config, 1, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status.message();
}

TEST(MatmulCpu, ReportsItsWorkspace) {
  const OperatorEntry* entry = Registry::Get().Find("matmul");
  const auto shape = tuning::ParseShape("m=64,n=64,k=64/f32");
  const auto config = tuning::ParseConfig(ConfigText("depth", 1));
  const auto device = MakeCpuDevice(2);
  ASSERT_TRUE(shape.ok() && config.ok() && device.ok());
  const auto runnable = Load(*entry, *shape, *config, **device);
  ASSERT_TRUE(runnable.ok());
  // At least the partial sums of the second half of k.
  EXPECT_GE((*runnable)->invocation().workspace_bytes(), 64 * 64 * 4);
}

}  // namespace
}  // namespace optrail::ops
