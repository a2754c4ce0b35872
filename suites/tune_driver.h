#ifndef OPTRAIL_SUITES_TUNE_DRIVER_H_
#define OPTRAIL_SUITES_TUNE_DRIVER_H_

// TuneTasks tunes a list of tasks one after another: skips those whose tuned
// config is in the store, resumes what was interrupted, records each session in
// the history and each winner in the store's overlay.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "base/table.h"
#include "suites/run_context.h"
#include "suites/tasks.h"
#include "suites/tune_session.h"
#include "suites/worker_evaluator.h"
#include "tuning/store/store.h"

namespace optrail::suites {

struct TuneDriverOptions {
  TuneOptions tune;  // journal_directory and on_progress are filled in
  WorkerOptions worker;
  bool retune = false;  // also what the store has
  // Start over without the trials of earlier sessions.
  bool forget_trials = false;
  bool quiet = false;
};

struct TuneSummary {
  proto::Task task;
  bool skipped = false;  // the store has it
  absl::optional<proto::Session> session;
  std::string error;  // this task could not be tuned; others go on
};

absl::StatusOr<std::vector<TuneSummary>> TuneTasks(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const TuneDriverOptions& options);

// The store of this binary's operators and the overlay.
absl::StatusOr<tuning::TunedConfigStore> LoadStore(const RunContext& context);

// The exact, verified config of a task; nullptr if the store has none.
const proto::TunedConfig* FindTuned(const tuning::TunedConfigStore& store,
                                    const proto::Task& task,
                                    const tuning::BoundSpace& space);

// Time of the default and of the winner, speed-up, trials, why it stopped.
std::string FormatTuneSummaries(const std::vector<TuneSummary>& summaries,
                                OutputFormat format);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_DRIVER_H_
