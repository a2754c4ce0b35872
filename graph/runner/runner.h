#ifndef OPTRAIL_GRAPH_RUNNER_RUNNER_H_
#define OPTRAIL_GRAPH_RUNNER_RUNNER_H_

// Runner executes a graph on a CPU or a GPU: steps in order, one arena for
// everything between them, weights packed before the first call. On a GPU the
// steps are captured as one CUDA graph, and a call launches it.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner,
//                            Runner::Create(graph, device));
//   OPTRAIL_RETURN_IF_ERROR(runner->SetInputs(inputs));
//   OPTRAIL_RETURN_IF_ERROR(runner->Run());
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
//                            runner->Outputs());
//
// On a GPU a node that only the reference computes ends one captured graph and
// begins another: its operands are copied to the host and its results back.
//
// It owns all of its memory; the device must outlive it. One thread at a time
// may use it. What is computed from constants alone is computed when it is
// made.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/fusion/fusion.h"
#include "graph/ir/graph.h"
#include "graph/memory/plan.h"
#include "graph/runner/feeder.h"
#include "graph/runner/program.h"
#include "graph/runner/step_order.h"
#include "ops/core/device.h"

namespace optrail::graph {

struct RunnerOptions {
  // A folder for compiled kernels; "": they are compiled each time.
  std::string compile_cache;
  // Tuned configs beside those that are checked in (tuning/store); "": none.
  std::string store;
  bool tuned = true;  // else every operator has its default config
  bool fuse = true;   // by FusionRules(); elementwise loops are joined anyhow
  // Asked wherever a rule could be applied; none: all are.
  FusionChooser choose;
  // The type of tensors in memory: ELEMENT_F32, or ELEMENT_BF16 (precision.h).
  proto::ElementType type = proto::ELEMENT_F32;
};

struct RunnerStep {
  std::string name;
  std::string kernel;  // the operator's name, "generated" or "reference"
  std::string what;    // shape and config, or the graph's operators
  int nodes = 0;
};

class Runner {
 public:
  virtual ~Runner() = default;

  // InvalidArgument names the node that has no kernel; ResourceExhausted says
  // how much memory is missing; errors of compilers and backends.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(
      Graph graph, ops::Device& device, const RunnerOptions& options = {});

  virtual absl::Status SetInputs(const std::vector<Array>& inputs) = 0;
  // Brings the bytes of inputs, dense and in row-major order, batch after
  // batch. ResourceExhausted where memory for batches is missing.
  virtual absl::StatusOr<std::unique_ptr<Feeder>> MakeFeeder(
      const FeederOptions& options) = 0;
  // On a GPU it returns once the call is launched; Outputs() waits for it.
  virtual absl::Status Run() = 0;
  // Returns once the outputs of the last call are in the host's memory: whoever
  // answers with them copies them from a GPU's, and waits for the call.
  virtual absl::Status BringOutputs() = 0;
  // A thread calls this before it uses a runner that another one made or used.
  virtual absl::Status UseInThisThread() = 0;
  // With RunnerOptions::type, those that are f32 in the graph are of that type.
  virtual absl::StatusOr<std::vector<Array>> Outputs() = 0;

  // Steps of a call, in order; those that ran before are not among them.
  virtual const std::vector<RunnerStep>& steps() const = 0;
  // One step alone, on what the steps before it left.
  virtual absl::Status RunStep(int step) = 0;

  // The places where a rule applied, and those where it did not with the
  // reason.
  virtual const FusionReport& fusion() const = 0;

  // Offsets of arena_buffers(), which live from step to step of a call; the
  // last upper is one beyond them, where the caller reads the outputs.
  virtual const MemoryPlan& plan() const = 0;
  virtual const std::vector<MemoryBuffer>& arena_buffers() const = 0;
  virtual int64_t constant_bytes() const = 0;
  // The sum of what the arena holds, had each value memory of its own.
  virtual int64_t unplanned_bytes() const = 0;
  // How much the order of the steps saves beside the order of the graph.
  virtual const OrderGain& order() const = 0;
};

// The steps that a Runner of the graph would make there, before they are
// ordered and merged. Nothing is compiled. Errors as Create's.
absl::StatusOr<Program> ProgramOn(const Graph& graph, ops::Device& device,
                                  const RunnerOptions& options);

// Describes the kernels of the graph with no rule applied: a line for each
// kernel, with the id and the config of an operator's or the code of a
// generated one. Nothing is compiled. Errors as Create's.
absl::StatusOr<std::string> KernelsText(const Graph& graph, ops::Device& device,
                                        const RunnerOptions& options);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_RUNNER_H_
