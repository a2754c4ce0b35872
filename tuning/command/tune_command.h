#ifndef OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_
#define OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_

// A whole tuning session of any command: `optrail tune --command` without its
// flags.
//
//   TuneCommandOptions options;
//   options.space_file = "train.space.textproto";
//   options.command = "./train --batch={batch}";
//   options.metrics = {"throughput:max"};
//   options.max_trials = 100;
//   OPTRAIL_ASSIGN_OR_RETURN(const int exit_code,
//                            RunTuneCommand(options, std::cout, std::cerr));
//
// The first metric is what is tuned; more make it a search for the Pareto
// front (or, with weights, for the least weighted product). The strategy asks,
// the command answers, and every trial is in the journal before it counts: the
// same call after an interruption goes on where that one was. At the end the
// best configs are run again, interleaved, because the best of many noisy
// readings is a lucky one.
//
// It times nothing: the command prints its metrics (metric.h).

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/table.h"
#include "tuning/command/command_evaluator.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tuning {

struct TuneCommandOptions {
  std::string space_file;    // docs/space_format.md
  std::string shape;         // "n=512/f32", if the space has dimensions
  proto::Hardware hardware;  // what hw.* stands for in the space

  std::string command;               // command_template.h
  std::vector<std::string> metrics;  // "NAME:min" or "NAME:max"; metric.h
  std::vector<std::string> metric_patterns;  // "NAME=REGEXP"; default: JSON
  std::vector<double> weights;  // one per metric; empty: the Pareto front
  CommandLimits limits;         // of one run

  std::string strategy = "default";
  uint64_t seed = 1;
  // Commands that run at the same time. More than one disturb each other's
  // timings unless they run elsewhere.
  int parallel = 1;

  // Stop rules; 0 (or infinite): none. Without any, the space is exhausted.
  int max_trials = 0;
  absl::Duration max_time = absl::InfiniteDuration();
  int patience_trials = 0;
  double min_expected_improvement = 0;  // a fraction: 0.01 is one percent
  double target = 0;                    // of the first metric, in its direction

  // One metric only: how many of the best are run again, and how often each.
  int finalists = 3;
  int verify_runs = 2;

  // Where the journal is; empty: none, and an interrupted session is lost.
  std::string journal_directory;

  OutputFormat format = OutputFormat::kTable;
  bool quiet = false;  // no progress on `log`
};

// Prints the best configs (or the front) with their metrics to `out`; progress,
// failures and the reason to stop to `log`. Returns the exit code: 0, or 1 if
// no config worked. Errors: a space, command, metric or option that is wrong
// (InvalidArgument, NotFound), a journal that can't be written.
absl::StatusOr<int> RunTuneCommand(const TuneCommandOptions& options,
                                   std::ostream& out, std::ostream& log);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_TUNE_COMMAND_H_
