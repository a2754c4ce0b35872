#ifndef OPTRAIL_SUITES_GRAPH_SERVE_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_SERVE_GRAPH_H_

// The command `optrail graph serve` without its flags: a model on a CPU or
// a GPU that answers requests, one sample each, under an open-loop load
// (open_loop.h). An answer is given when it is in the host's memory.
//
//   GraphServeCommand command;
//   command.model.path = "dlrm.onnx";
//   command.load.load = 20'000;
//   command.load.batch = 64;
//   OPTRAIL_ASSIGN_OR_RETURN(const ExitCode code,
//                            ServeGraph(command, std::cout));
//
// Each worker has a runner with an arena, constants and threads of its own: a
// runner is for one thread at a time. Workers share compiled kernels, configs
// and fusion decisions.

#include <ostream>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "suites/graph/graph_record.h"
#include "suites/graph/open_loop.h"
#include "suites/graph/run_graph.h"

namespace optrail::suites {

struct GraphServeCommand {
  // Path, import, device, threads of a worker on a CPU, type, fusion, stores,
  // record, format.
  GraphRunCommand model;
  // A `batch` of 0 is the model's. A `load` of 0 asks for the highest that
  // keeps `p99_limit`.
  OpenLoopOptions load;
  absl::Duration p99_limit = absl::ZeroDuration();  // 0: none
  bool untuned = false;  // every operator has its default config
};

// The largest number of requests of one load, whose latencies are kept.
inline constexpr double kMostRequests = 5e7;

// Prints a row of what was served, and what it means: in a table for people
// below it, else on standard error where it is not kOk. If no load keeps the
// limit, the row has a load of 0. Nothing is recorded of a load that is not
// served, or of which too few requests are known.
absl::StatusOr<ExitCode> ServeGraph(const GraphServeCommand& command,
                                    std::ostream& out);

// kCheckFailed: the server is overloaded, or the 99th percentile is above its
// limit. kNotEnoughData: there is a limit, and too few requests to say that.
ExitCode CodeOfServed(const ServedLoad& served, absl::Duration p99_limit);

// The record of a load, but for its start and the arena. A load that was
// searched for has its rate and the 99th percentile, and no time.
MeasuredGraph MeasuredOfServed(const GraphServeCommand& command, double load,
                               const ServedLoad& served);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_SERVE_GRAPH_H_
