#ifndef OPTRAIL_GRAPH_RUNNER_KERNELS_H_
#define OPTRAIL_GRAPH_RUNNER_KERNELS_H_

// KernelLoader makes the steps of a program ready to run: our operators with
// the config that was tuned for the shape (else the default), and generated
// kernels by the system's compiler.
//
//   KernelLoader loader(*machine, "/tmp/compiled", ".optrail/store");
//   OPTRAIL_ASSIGN_OR_RETURN(const LoadedKernel kernel,
//                            loader.LoadOperator("matmul", shape));
//   Use(kernel.config);

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/runner/codegen.h"
#include "graph/runner/machine.h"
#include "ops/core/backend.h"
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
  // configs. The machine must outlive what is loaded.
  KernelLoader(Machine& machine, std::string cache, std::string store,
               bool tuned = true);

  // NotFound names an operator that is not linked in.
  absl::StatusOr<KernelChoice> Choose(const std::string& name,
                                      const optrail::proto::Shape& shape);

  // OK if the device has a kernel of ours for the shape, else why not: errors
  // of Choose(), or the backend's about this size.
  absl::Status Computes(const std::string& name,
                        const optrail::proto::Shape& shape);

  // Compiles those that are not in the cache yet, several at a time.
  absl::Status Compile(
      const std::vector<std::pair<std::string, optrail::proto::Shape>>& wanted);

  // Errors of Choose() and of the backend. Equal shapes share an invocation,
  // which packs weights by their address.
  absl::StatusOr<LoadedKernel> LoadOperator(const std::string& name,
                                            const optrail::proto::Shape& shape);

  // A runnable for each: the same one where the machine takes numbers.
  absl::StatusOr<std::vector<LoadedKernel>> LoadGenerated(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<int>& operands);

 private:
  absl::StatusOr<KernelChoice> MakeChoice(const std::string& name,
                                          const optrail::proto::Shape& shape);
  absl::StatusOr<const tuning::TunedConfigStore*> StoreOf(
      const ops::OperatorEntry& entry);

  Machine& machine_;
  const std::string cache_;
  const std::string store_;
  const bool tuned_;
  // Of each operator, by name.
  std::map<std::string, tuning::TunedConfigStore> stores_;
  // By operator and shape.
  std::map<std::string, absl::StatusOr<KernelChoice>> choices_;
  std::map<std::string, LoadedKernel> loaded_;
  std::vector<std::shared_ptr<ops::Backend>> generated_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_KERNELS_H_
