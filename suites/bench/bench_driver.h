#ifndef OPTRAIL_SUITES_BENCH_BENCH_DRIVER_H_
#define OPTRAIL_SUITES_BENCH_BENCH_DRIVER_H_

// RunBenchmarks measures tasks with their default and tuned configs and returns
// a run, ready to be printed and recorded.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "suites/bench/bench_journal.h"
#include "suites/bench/bench_session.h"
#include "suites/proto/workload.pb.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tracker/proto/run.pb.h"

namespace optrail::suites {

struct BenchDriverOptions {
  BenchOptions bench;  // on_progress is filled in
  WorkerOptions worker;
  std::string suite;  // name of the run's suite
  // Whose layers the tasks are; the run keeps them. No layers: none.
  proto::Workload workload;

  bool with_default = true;
  bool with_tuned = true;
  // Metered in every benchmark.
  std::vector<std::string> metrics;
  // The metric that tuned configs were tuned for, "" for time.
  std::string objective;
  // A config given by hand: runs in place of the tuned one, under its series,
  // so that a gate compares it with what the history has; or, with a name,
  // beside the others under a series of its own. Shapes for which it is not
  // valid run as tuned, and a note says so.
  absl::optional<proto::Config> given_config;
  std::string given_name;
  // The command that tunes these tasks, for the note that some are not tuned.
  std::string tune_command = "optrail tune";
  bool quiet = false;
  // Measured in turn with other runs of this id; `round` is this one's turn,
  // from 1. They are judged as pairs.
  std::string pairing_id;
  int round = 0;
  // Goes on from what an interrupted call of the same benchmarks kept.
  bool resume = false;
};

// A run, and the journal that has kept its readings so far.
struct MeasuredRun {
  proto::Run run;
  // Null where none could be written. To be removed once the run is where its
  // caller wants it.
  std::unique_ptr<BenchJournal> journal;
};

// The benchmarks that RunBenchmarks would run, by name, after
// --benchmark_filter. InvalidArgument if the given config is valid for no task:
// the message names knob or constraint.
absl::StatusOr<std::vector<BenchCase>> MakeBenchCases(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const BenchDriverOptions& options);

// A line for each task whose tuned config is refused or stands in from another
// shape or machine, and one for all after the first few. "" if there is none.
std::string SubstitutedNotes(const std::vector<BenchCase>& cases);

// One line for all tasks that run with the default config in place of a tuned
// one: how many, which first, and the command that tunes them. "" if none does.
std::string UntunedNote(const std::vector<BenchCase>& cases,
                        const std::string& tune_command);

// A signal meanwhile says how to go on. With `resume`, the run is the one that
// was interrupted: its id, its start, its readings.
absl::StatusOr<MeasuredRun> RunBenchmarks(const std::vector<BenchCase>& cases,
                                          const RunContext& context,
                                          const BenchDriverOptions& options);

// kCheckFailed if a benchmark failed; else kNotEnoughData if one was too
// disturbed to be told; else kOk. With `peers_may_lack`, a backend other than
// the device's own that this machine lacks is no failure.
ExitCode ExitCodeOfRun(const proto::Run& run, bool peers_may_lack);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_BENCH_DRIVER_H_
