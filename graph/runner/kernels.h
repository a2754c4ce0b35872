#ifndef OPTRAIL_GRAPH_RUNNER_KERNELS_H_
#define OPTRAIL_GRAPH_RUNNER_KERNELS_H_

// KernelLoader makes the steps of a program ready to run: our operators with
// the config that was tuned for the shape (else the default), and generated
// kernels by the system's compiler.
//
//   KernelLoader loader(device, "/tmp/compiled", ".optrail/store");
//   OPTRAIL_ASSIGN_OR_RETURN(const LoadedKernel kernel,
//                            loader.LoadOperator("matmul", shape));
//   Use(kernel.config);

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "ops/core/cpu_device.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/core/tuned_kernel.h"
#include "tuning/store/store.h"

namespace optrail::graph {

// The kernel that computes an operator's shape.
struct KernelChoice {
  ops::ChosenKernel chosen;
  ops::Target target;
  // "linear 0123456789abcdef tile_m=4,...": the kernel's id and the config.
  std::string text;
};

struct LoadedKernel {
  std::shared_ptr<ops::Runnable> runnable;
  std::string config;  // canonical text
  std::string source;  // "tuned", "tuned on HARDWARE", "default"
};

class KernelLoader {
 public:
  // `cache` is a folder for compiled code, `store` one of tuned configs beside
  // those that are checked in; "": none. Without `tuned` there are only default
  // configs. The device must outlive what is loaded.
  KernelLoader(ops::CpuDevice& device, std::string cache, std::string store,
               bool tuned = true);

  // NotFound names an operator that is not linked in.
  absl::StatusOr<KernelChoice> Choose(const std::string& name,
                                      const optrail::proto::Shape& shape);

  // Errors of Choose() and of the backend. Equal shapes share an invocation,
  // which packs weights by their address.
  absl::StatusOr<LoadedKernel> LoadOperator(const std::string& name,
                                            const optrail::proto::Shape& shape);

  // Kernels of KernelFile(bodies): the first operand of a call points to the
  // number of the body.
  absl::StatusOr<LoadedKernel> LoadGenerated(
      const std::vector<std::string>& bodies);

 private:
  absl::StatusOr<const tuning::TunedConfigStore*> StoreOf(
      const ops::OperatorEntry& entry);

  ops::CpuDevice& device_;
  const std::string cache_;
  const std::string store_;
  const bool tuned_;
  // Of each operator, by name.
  std::map<std::string, tuning::TunedConfigStore> stores_;
  std::map<std::string, LoadedKernel> loaded_;  // by operator and shape
  std::vector<std::shared_ptr<ops::Backend>> generated_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_KERNELS_H_
