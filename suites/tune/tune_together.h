#ifndef OPTRAIL_SUITES_TUNE_TUNE_TOGETHER_H_
#define OPTRAIL_SUITES_TUNE_TUNE_TOGETHER_H_

// SearchTogether advances several tuning sessions by turns, so that a total
// budget goes where the workload's total time falls most
// (tuning/search/task_scheduler.h says how).
//
//   TogetherOptions options;
//   options.total_trials = 400;
//   const std::vector<absl::Status> searched =
//       SearchTogether({{matmul.get(), {"matmul", 96}},
//                       {softmax.get(), {"softmax", 24}}}, options);
//   ... Finish() each session that is OK ...
//
// Tasks with the same knobs (TuningTask::siblings) try each other's best
// configs and learn from each other's trials.
//
// Whose turn it is depends on nothing but the tasks, the options and the trials
// of their journals: killed at any moment and started again with the same, the
// journals answer first, and every task gets the trials it would have got.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "tuning/search/task_scheduler.h"
#include "tuning/session/session.h"

namespace optrail::suites {

struct TogetherTask {
  tuning::Session* session = nullptr;  // opened, not yet searched
  // Weight: calls per run of the workload. Costs are in ns.
  tuning::TuningTask task;
  // Index into TogetherOptions::shares.
  int group = 0;
};

struct TogetherProgress {
  int task = 0;  // whose trial it was
  int64_t total_trials = 0;
  int64_t total_elapsed_ns = 0;
};

struct TogetherOptions {
  // Over all tasks; 0: no limit. A session's own budget remains its upper
  // bound. With a limit of time alone, gains count per second, else per trial.
  int64_t total_trials = 0;
  int64_t total_time_ns = 0;
  // The part of the total that each group of tasks has before the others;
  // empty: no group has one. A group that used up its share is held: it goes
  // on, a turn at a time, once all others have stalled or are held, too.
  std::vector<double> shares;
  tuning::TaskSchedulerOptions scheduler;
  std::function<void(int task)> before_turn;                 // may be empty
  std::function<void(const TogetherProgress&)> after_trial;  // may be empty
};

// Searches until the total is spent or every session has ended by itself, then
// chooses the finalists of all. Stop reasons: the session's own;
// LEFT_FOR_OTHERS for one that has stalled while another has not; else
// TRIALS_SPENT or TIME_SPENT of the total.
//
// One status per task: what kept a session from going on (its journal is not
// writable, say) does not keep the others.
std::vector<absl::Status> SearchTogether(const std::vector<TogetherTask>& tasks,
                                         const TogetherOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_TOGETHER_H_
