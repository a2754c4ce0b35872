#ifndef OPTRAIL_SUITES_GRAPH_TUNE_GRAPH_H_
#define OPTRAIL_SUITES_GRAPH_TUNE_GRAPH_H_

// The command `optrail graph tune` without its flags: it tunes a model that
// answers requests (serve_graph.h) in layers, and keeps a ledger of what each
// of them brought.
//
//   GraphTuneCommand command;
//   command.path = "dlrm.onnx";
//   command.p99_limit = absl::Milliseconds(5);
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const ExitCode code,
//       TuneGraph(command, OwnTools(command, context), std::cout, std::cerr));
//
// The stages are operators (their configs, by the scheduler of `optrail tune
// --workload`), fusion (rules that are measured), batch, workers and threads
// (a space, by `optrail tune --command`), and operators and fusion again, since
// another batch makes other shapes. The value of a stage is the highest load
// that keeps the limit, and each stage is measured interleaved with the one
// before it. All of that is done by commands of this binary, which a person can
// repeat.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "base/text/table.h"
#include "suites/worker/run_context.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::suites {

struct GraphTuneCommand {
  std::string path;                  // of the model
  std::vector<std::string> imports;  // flags of its import: "--seed=1"
  std::vector<std::string> places;   // "--store=DIR", "--history=DIR"
  absl::Duration p99_limit = absl::Milliseconds(5);
  int64_t batch = 1;  // with which the first stage begins
  int workers = 1, threads = 1;
  // At most so many threads of all workers together, and requests of a batch.
  int cores = 1;
  int64_t most_batch = 1024;
  absl::Duration duration = absl::Milliseconds(500);  // of each load
  absl::Duration max_wait = absl::Milliseconds(1);
  int64_t total_trials = 100;  // of operators, in each stage that tunes them
  int64_t trials = 16;         // of batch, workers and threads
  absl::Duration proof_time = absl::Seconds(30);  // of each stage
  uint64_t seed = 1;
  std::string folder;  // for what the stages write
  OutputFormat format = OutputFormat::kTable;
};

// How a stage leaves the model to be served.
struct ServedAs {
  bool untuned = true;
  std::string fuse = "none";
  int64_t batch = 1;
  int workers = 1, threads = 1;
};

// `optrail graph serve` with --format=json, the limit and no load.
std::vector<std::string> ServeArguments(const GraphTuneCommand& command,
                                        const ServedAs& as);

// The space file of the search: powers of two, the number of cores and the
// values that `as` has. Threads beyond the cores are left out.
std::string ServeSpace(const GraphTuneCommand& command, const ServedAs& as);

struct GraphStage {
  std::string name, changed;
  bool kept = false;
  bool failed = false;  // by an error, which `changed` tells
  // Requests per second, medians of the rounds; 0: none were held.
  double before = 0, after = 0;
  double latency_p99_ns = 0;  // after
  proto::Proof proof;         // with a measurement of each side and round
  absl::Duration took;
  ServedAs as;  // what the stage has tried
};

// The stages use these functions; tests have others.
struct GraphTools {
  // Runs `optrail ARGUMENTS`, and returns what it prints. Another exit code
  // than 0 is an error with its last words; Aborted stands for exit code 1.
  std::function<absl::StatusOr<std::string>(
      const std::vector<std::string>& arguments)>
      run;
  // Searches a space file for the highest requests_per_second that a command
  // line of optrail (with a place for each knob) prints.
  std::function<absl::StatusOr<proto::Session>(const std::string& space,
                                               const std::string& arguments)>
      search;
  // Keeps the ledger.
  std::function<absl::Status(const std::vector<GraphStage>& stages)> record;
};

GraphTools OwnTools(const GraphTuneCommand& command, const RunContext& context);

// The ledger as a run for the history: two results for each stage that was
// measured, the model before and after it, with a measurement of each round.
proto::Run RunOfStages(const GraphTuneCommand& command,
                       const std::vector<GraphStage>& stages,
                       int64_t started_unix_ns, const RunContext& context);

// Prints the ledger and the command that serves the model as it is then. An
// error ends the stage in which it is met: what there is is printed and
// recorded before it is returned. FailedPrecondition where the model as it is
// at first keeps the limit at no load.
absl::StatusOr<ExitCode> TuneGraph(const GraphTuneCommand& command,
                                   const GraphTools& tools, std::ostream& out,
                                   std::ostream& log);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_TUNE_GRAPH_H_
