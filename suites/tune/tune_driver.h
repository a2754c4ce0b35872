#ifndef OPTRAIL_SUITES_TUNE_TUNE_DRIVER_H_
#define OPTRAIL_SUITES_TUNE_TUNE_DRIVER_H_

// TuneTasks tunes a list of tasks, one after another or together within a total
// budget: skips those whose tuned config is in the store, resumes what was
// interrupted, records each session in the history and each winner in the
// store's overlay.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "suites/tune/search_within.h"
#include "suites/tune/tune_session.h"
#include "suites/tune/tune_summary.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_options.h"
#include "suites/workload/tasks.h"
#include "tuning/store/store.h"

namespace optrail::suites {

struct TuneDriverOptions {
  TuneOptions tune;  // journal_directory and on_progress are filled in
  WorkerOptions worker;
  // A budget of all tasks together, which a scheduler divides: each next trial
  // goes where a run of the workload gains most (tune_together.h). The budget
  // in `tune` bounds each task. 0: none; both 0: one task after another, each
  // with its budget.
  int64_t total_trials = 0;
  int64_t total_time_ns = 0;
  // Parts of a total by operator (operator_shares.h); empty: gains alone
  // decide.
  std::map<std::string, double> operator_shares;
  // Begins with the task from which a run of the workload is expected to gain
  // most per second of tuning (suites/predict/start_order.h); with a total, its
  // first turns. Where the history tells nothing, the tasks' order stays.
  bool most_gain_first = false;
  // The machines that measure configs (elsewhere.h); none: workers of this
  // process do. Not with a total.
  std::vector<std::string> elsewhere;
  bool retune = false;  // also what the store has
  // A stored config of today's kernel stays in the store unless another one is
  // proven better by a margin (SessionSetup::incumbent_margin).
  bool defend_stored = true;
  // Prove what the store has, whatever kernel it was measured with, and search
  // nothing; the store changes only where the proof succeeds. Tasks of which it
  // has no valid config are skipped. Not with a total.
  bool stored_only = false;
  // The bucket of the winner's entry (tuning/store/bucket.h); empty: none. It
  // is for a single task.
  std::string bucket;
  // Whether the history and the store keep the sessions. Not false with a
  // total.
  bool keep = true;
  // A valid config that is defended in place of the store's; absent: that.
  absl::optional<proto::Config> incumbent;
  // Searches some knobs around a config. `keep` has to be false.
  absl::optional<SearchWithin> within;
  // Searches the space of this text in place of the operator's. `keep` has to
  // be false.
  absl::optional<std::string> space_textproto;
  // Start over without the trials of earlier sessions.
  bool forget_trials = false;
  bool quiet = false;
};

// InvalidArgument for a total of fewer trials than there are tasks, and for
// shares that leave nothing for one.
absl::StatusOr<std::vector<TuneSummary>> TuneTasks(
    const std::vector<TaskEntry>& tasks, const RunContext& context,
    const TuneDriverOptions& options);

// InvalidArgument for a total of fewer trials than there are tasks to tune.
absl::Status CheckTotalTrials(const TuneDriverOptions& options, size_t tasks);

// True if TuneTasks leaves the task as it is, since the store has a config of
// it that is proven for what the options ask.
bool IsTunedAlready(const tuning::TunedConfigStore& store,
                    const TaskEntry& task, const TaskSpace& space,
                    const TuneDriverOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_DRIVER_H_
