#ifndef OPTRAIL_SUITES_GRAPH_RECOMPUTE_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_RECOMPUTE_GRAPH_H_

// The command `optrail graph recompute` without its flags: what a training step
// of a model keeps from its forward pass, and what it costs to keep less.
//
//   GraphRecomputeCommand command;
//   command.path = "bert.onnx";
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            RecomputeGraph(command, std::cout));

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "base/exit_code.h"
#include "base/text/table.h"
#include "graph/onnx/import.h"

namespace optrail::suites {

struct GraphRecomputeCommand {
  std::string path;
  graph::ImportOptions import;
  int threads = 1;
  // The part of the kept bytes that may be left; the first point of the front
  // within it is measured.
  double memory = .5;
  double tolerance = 1e-4;    // of a gradient's largest value
  std::string store;          // of tuned configs; "": those that are checked in
  std::string compile_cache;  // "": kernels are compiled each time
  OutputFormat format = OutputFormat::kTable;
};

// Prints the predicted front of time against memory, and what the chosen point
// takes, interleaved with the step that keeps everything. kCheckFailed where
// the gradients of both differ (by more than rounding: docs/method/graphs.md),
// or no point is within `memory`; kNotEnoughData where all gradients are
// rounding alone.
absl::StatusOr<ExitCode> RecomputeGraph(const GraphRecomputeCommand& command,
                                        std::ostream& out);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_RECOMPUTE_GRAPH_H_
