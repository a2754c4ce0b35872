#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/process/machine_memory.h"
#include "graph/runner/jit_header.h"
#include "graph/runner/machine.h"
#include "ops/core/cpu_device.h"
#include "ops/core/jit_backend.h"

namespace optrail::graph {
namespace {

// Batches are written to where the model reads them.
class InPlaceFeeder : public Feeder {
 public:
  explicit InPlaceFeeder(const std::vector<FedInput>& inputs) {
    for (const FedInput& input : inputs) {
      addresses_.push_back(input.address);
      bytes_.push_back(input.bytes);
    }
  }

  std::vector<int64_t> bytes() const override { return bytes_; }

  absl::StatusOr<absl::Span<char* const>> Next() override {
    return absl::Span<char* const>(addresses_);
  }
  absl::Status Send() override { return absl::OkStatus(); }

 private:
  std::vector<char*> addresses_;
  std::vector<int64_t> bytes_;
};

class CpuMachine : public Machine {
 public:
  explicit CpuMachine(ops::CpuDevice& device) : device_(device) {}

  ops::Device& device() override { return device_; }
  int threads() const override { return device_.threads(); }
  ops::Target target() const override {
    return {optrail::proto::CPU, "native", device_.hardware()};
  }
  const LoopPrinter& printer() const override { return CppPrinter(); }
  int64_t storage_bytes() const override { return 64; }
  int64_t operand_bytes() const override { return 1; }
  absl::StatusOr<int64_t> MemoryBytes() const override {
    return MachineMemoryBytes();
  }
  optrail::proto::CacheMode cache_mode() const override {
    return optrail::proto::HOT;
  }
  optrail::proto::LaunchMode launch_mode() const override {
    return optrail::proto::LAUNCH_MODE_UNSPECIFIED;
  }

  std::shared_ptr<ops::Backend> Generated(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<int>& operands) const override {
    std::shared_ptr<ops::Backend> backend = ops::MakeJitBackend("generated");
    ops::BackendFiles files;
    files.sources = {{"jit.h", kJitHeader},
                     {"graph.jit.cc", CppPrinter().File(kernels, operands)}};
    files.sources_hash = Fingerprint(files.sources[1].contents);
    backend->SetFiles(std::move(files));
    return backend;
  }
  bool takes_number() const override { return true; }

  absl::Status Write(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Read(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  const char* HostAddress(const char* address) const override {
    return address;
  }
  absl::Status UseInThisThread() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<RecordedCalls>> Record(
      const std::function<absl::Status()>& calls) override {
    return nullptr;
  }

  absl::StatusOr<std::unique_ptr<Feeder>> MakeFeeder(
      std::vector<FedInput> inputs, const FeederOptions& options) override {
    return std::make_unique<InPlaceFeeder>(inputs);
  }

 private:
  ops::CpuDevice& device_;
};

}  // namespace

std::unique_ptr<Machine> MakeCpuMachine(ops::Device& device) {
  auto* const own = dynamic_cast<ops::CpuDevice*>(&device);
  return own == nullptr ? nullptr : std::make_unique<CpuMachine>(*own);
}

absl::StatusOr<std::unique_ptr<Machine>> Machine::Of(ops::Device& device) {
  std::unique_ptr<Machine> machine = MakeCpuMachine(device);
  if (machine == nullptr) machine = MakeCudaMachine(device);
  if (machine == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("graphs do not run on ", device.hardware().id(),
                     ": expected a CPU or a CUDA GPU"));
  }
  return machine;
}

}  // namespace optrail::graph
