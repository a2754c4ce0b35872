#ifndef OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_
#define OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_

// TaskScheduler divides a budget of trials over the tasks of a workload: each
// next batch goes to the (operator, shape) where the workload's total time is
// expected to fall most (the idea is that of Ansor's task scheduler: Zheng et
// al., OSDI 2020).
//
//   TaskScheduler scheduler({{"matmul", 24.0}, {"softmax", 12.0}});
//   while (const absl::optional<int> task = scheduler.Next()) {
//     ... a batch of trials of *task ...
//     scheduler.Report(*task, {trials, best_cost});
//   }
//
// The expected gain of a task is its weight times its cost times the fraction
// that the next trial may save:
//  - by its history: what the later half of its trials saved, per trial. The
//    span grows with the trials, since gains come ever more rarely;
//  - by its trials: the next one saves less than the mean of the later half,
//    the more so the more there were (n^-1/4);
//  - by the strategy's model, if it has one: its expected improvement. History
//    and model err in different ways; their geometric mean counts.
//  - by its siblings: the best config of a task with the same knobs may save
//    more at once than the search is expected to (shared_winners.h).
// It chooses tasks, and of configs only those that are best elsewhere. What it
// answers depends on the reports alone, so a journal replayed gives the same
// schedule.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/search/shared_winners.h"

namespace optrail::tuning {

struct TuningTask {
  std::string name;
  // How often the workload calls it: its share of the total is weight * cost.
  double weight = 1;
  // The least cost imaginable (the roofline's time); 0 if unknown.
  double floor_cost = 0;
  // Indices of the tasks with the same knobs, the nearest first: they try each
  // other's best configs.
  std::vector<int> siblings = {};
};

struct TaskSchedulerOptions {
  // Every task first gets so many trials, one with siblings a single one; a
  // task without any success gets up to four times as many.
  int warm_up_trials = 4;
  // A task is left to the others after so many trials in a row without a gain
  // of at least min_gain (a fraction of its cost).
  int patience_trials = 64;
  double min_gain = 0.002;
  // Added to the logarithm of what the later half of the trials saved: a task
  // that saved nothing there is not hopeless yet.
  double prior_gain = 0.2;
};

// Returns the warm-up of each task for a total of so many trials over so many
// tasks: about a quarter of the total for all of them, rounded up to whole
// trials per task, and at most the default of the options. A warm-up of
// everything would leave nothing to decide about.
int WarmUpTrials(int64_t total_trials, int tasks);

// The result of a batch of trials of one task.
struct TaskReport {
  int trials = 1;  // in the batch, at least one
  // The best cost of the task so far; nullopt while nothing succeeded.
  absl::optional<double> best_cost = absl::nullopt;
  // The strategy's, as a fraction of the best cost; nullopt without a model.
  absl::optional<double> expected_improvement = absl::nullopt;
  // What the batch took (seconds, say), if not all trials cost the budget the
  // same; 0: one per trial. The same unit for all tasks.
  double effort = 0;
  // The config of best_cost; only tasks with siblings need one. Equal configs
  // of two tasks have equal texts.
  std::string best_config = {};
  // True if what the last TakeSuggestion returned is among the trials by now.
  bool suggestion_answered = true;
};

class TaskScheduler {
 public:
  TaskScheduler(std::vector<TuningTask> tasks,
                const TaskSchedulerOptions& options = {});

  // The task to give the next trials to: one that is held only when no other is
  // left that has not stalled, one that has stalled only when all others have.
  // nullopt when all are finished. The answer changes only with Report, Hold
  // and Finish.
  absl::optional<int> Next() const;

  void Report(int task, const TaskReport& report);

  // The config of another task that this one should try first in its turn;
  // nullopt: it goes on by itself. The task tries it, or Refuse() says that it
  // can't.
  absl::optional<std::string> TakeSuggestion(int task);
  void RefuseSuggestion(int task) { winners_.Refuse(task); }

  // The task has used up its share of the budget. The warm-up is every task's,
  // held or not.
  void Hold(int task);

  // Returns whether the task has had fewer trials than its warm-up has.
  bool WarmsUp(int task) const { return WarmsUp(states_[task]); }
  // The trials of its warm-up, if one of them is a success.
  int WarmUpOf(int task) const {
    return states_[task].task.siblings.empty() ? options_.warm_up_trials : 1;
  }

  // The task's strategy has nothing left to ask.
  void Finish(int task);

  // weight * cost that the next trial is expected to save, per effort.
  double ExpectedGain(int task) const;

  // Returns whether patience_trials went by without a gain, and no sibling's
  // best config is left to try or being tried.
  bool HasStalled(int task) const;

  // Returns whether every task that is not finished has stalled.
  bool AllStalled() const;

 private:
  struct State {
    TuningTask task;
    int trials = 0;
    double effort = 0;
    int idle_trials = 0;
    bool held = false;
    bool finished = false;
    absl::optional<double> expected_improvement = absl::nullopt;
    // Trials and best cost at the end of each batch, from the first success on.
    std::vector<std::pair<int, double>> progress;
  };

  // How much a task has to wait for the others.
  enum class Tier { kOpen, kHeld, kStalled };

  bool WarmsUp(const State& state) const;
  Tier TierOf(int task) const;
  // The fraction of its cost that a sibling's best config may save.
  double Promise(int task) const;

  const TaskSchedulerOptions options_;
  std::vector<State> states_;
  SharedWinners winners_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_
