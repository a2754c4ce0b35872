#ifndef OPTRAIL_SUITES_GRAPH_RUN_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_RUN_GRAPH_H_

// The command `optrail graph run` without its flags: a model on a CPU or a GPU,
// checked against the reference and timed by the one stopwatch, as a whole and
// step by step.
//
//   GraphRunCommand command;
//   command.path = "resnet50.onnx";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            RunGraph(command, std::cout));

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "base/text/table.h"
#include "graph/onnx/import.h"
#include "graph/runner/runner.h"
#include "ops/core/device.h"
#include "suites/graph/measured_fusion.h"

namespace optrail::suites {

enum class FuseMode {
  kRules,     // wherever a rule applies
  kNone,      // elementwise loops are joined all the same
  kMeasured,  // where it is not slower (measured_fusion.h)
};

// For flags of that type: rules, none, measured.
bool AbslParseFlag(absl::string_view text, FuseMode* mode, std::string* error);
std::string AbslUnparseFlag(FuseMode mode);

struct GraphRunCommand {
  std::string path;
  graph::ImportOptions import;
  std::string data;            // a .npz with the inputs; "": seeded ones
  std::string device = "cpu";  // the name of a kind of device
  // The type of tensors in memory: "f32", or "bf16" (graph/runner/precision.h),
  // with which `tolerance` is 300 times as wide.
  std::string type = "f32";
  int threads = 1;
  FuseMode fuse = FuseMode::kRules;
  std::string fusion_store;  // the folder of decisions, with kMeasured
  // The side whose calls are interleaved with those of the graph: "unfused",
  // the graph without rules; "untuned", the graph with default configs; another
  // text is the command of a peer (peer.h); "" for none.
  std::string against;
  std::string store;  // of tuned configs; "": those that are checked in
  // Multiplications above which the result is not checked, since the reference
  // would take long.
  double most_checked_flop = 2e10;
  double tolerance = 1e-4;
  std::string compile_cache;  // "": kernels are compiled each time
  std::string page;           // where a page about the run goes; "": nowhere
  // With `record`, the folder of the history that gets the run.
  bool record = false;
  std::string history;
  OutputFormat format = OutputFormat::kTable;
};

// The device, and with --threads=0 the number of its threads in `command`.
absl::StatusOr<std::unique_ptr<ops::Device>> DeviceOf(GraphRunCommand& command);

// Sets all options but `choose`. InvalidArgument for a type other than f32 and
// bf16.
absl::StatusOr<graph::RunnerOptions> RunnerOptionsOf(
    const GraphRunCommand& command);

// Makes a runner of `graph` as `options` and --fuse say. With measured fusion
// `fusion` gets the decisions, which are saved, and `options.choose` becomes
// the function of `fusion` that decides.
absl::StatusOr<std::unique_ptr<graph::Runner>> MakeRunner(
    const GraphRunCommand& command, const graph::Graph& graph,
    ops::Device& device, graph::RunnerOptions& options,
    std::unique_ptr<MeasuredFusion>& fusion);

// Prints the steps by time and what the whole takes; nothing that differs from
// the reference is recorded. kCheckFailed where the
// result differs from the reference's, kNotEnoughData where the machine was too
// busy to tell how long it takes.
absl::StatusOr<ExitCode> RunGraph(const GraphRunCommand& command,
                                  std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_RUN_GRAPH_H_
