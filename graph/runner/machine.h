#ifndef OPTRAIL_GRAPH_RUNNER_MACHINE_H_
#define OPTRAIL_GRAPH_RUNNER_MACHINE_H_

// Machine is what a Runner needs to know of the device on which a graph runs:
// how kernels are printed and compiled, how bytes get there and back, and how
// a sequence of calls is repeated.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine,
//                            Machine::Of(device));
//   OPTRAIL_RETURN_IF_ERROR(machine->Write(address, bytes.data(), size));
//
// cpu_machine.cc has the CPU's, cuda_machine.cc that of a GPU, on whose one
// stream everything is launched.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/runner/codegen.h"
#include "graph/runner/feeder.h"
#include "ops/core/backend.h"
#include "ops/core/device.h"

namespace optrail::graph {

// Calls that were recorded, to be made again at a stroke.
class RecordedCalls {
 public:
  virtual ~RecordedCalls() = default;
  virtual absl::Status Run() = 0;
};

struct FedInput {
  char* address = nullptr;  // on the device
  int64_t bytes = 0;
};

class Machine {
 public:
  // InvalidArgument for a kind of device on which graphs do not run. The
  // device must outlive the machine.
  static absl::StatusOr<std::unique_ptr<Machine>> Of(ops::Device& device);

  virtual ~Machine() = default;

  virtual ops::Device& device() = 0;
  // Threads of the host that a kernel may use.
  virtual int threads() const = 0;
  virtual ops::Target target() const = 0;
  virtual const LoopPrinter& printer() const = 0;
  // Storages and operands of kernels begin at multiples of these.
  virtual int64_t storage_bytes() const = 0;
  virtual int64_t operand_bytes() const = 0;
  virtual absl::StatusOr<int64_t> MemoryBytes() const = 0;
  // How a step finds its operands and is launched, by which a tuned config of
  // it is looked up.
  virtual optrail::proto::CacheMode cache_mode() const = 0;
  virtual optrail::proto::LaunchMode launch_mode() const = 0;

  // Returns a backend for generated kernels that have so many operands each.
  // Kernel k is the one of the shape "kernel=k".
  virtual std::shared_ptr<ops::Backend> Generated(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<int>& operands) const = 0;
  // Returns whether all of them are one artifact that is loaded once, whose
  // first operand points to the number of the kernel.
  virtual bool takes_number() const = 0;

  // To be called by a thread before it uses what another one made.
  virtual absl::Status UseInThisThread() = 0;

  // Both wait for what was launched.
  virtual absl::Status Write(void* to, const void* from, int64_t bytes) = 0;
  virtual absl::Status Read(void* to, const void* from, int64_t bytes) = 0;
  // The memory itself where the host can read it, else nullptr.
  virtual const char* HostAddress(const char* address) const = 0;

  // Records calls that launch their work and return; nullptr where repeating
  // them costs no more than launching.
  virtual absl::StatusOr<std::unique_ptr<RecordedCalls>> Record(
      const std::function<absl::Status()>& calls) = 0;

  // Brings batches to inputs that lie there.
  virtual absl::StatusOr<std::unique_ptr<Feeder>> MakeFeeder(
      std::vector<FedInput> inputs, const FeederOptions& options) = 0;
};

std::unique_ptr<Machine> MakeCpuMachine(ops::Device& device);   // or nullptr
std::unique_ptr<Machine> MakeCudaMachine(ops::Device& device);  // or nullptr

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_MACHINE_H_
