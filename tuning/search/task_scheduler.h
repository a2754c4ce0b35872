#ifndef OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_
#define OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_

// TaskScheduler divides a budget of trials over the tasks of a workload: each
// next batch goes to the (operator, shape) where the workload's total time is
// expected to fall most (after Ansor's task scheduler: Zheng et al., OSDI
// 2020).
//
//   TaskScheduler scheduler({{"matmul", 24.0}, {"softmax", 12.0}});
//   while (const absl::optional<int> task = scheduler.Next()) {
//     ... a batch of trials of *task ...
//     scheduler.Report(*task, trials, best_cost);
//   }
//
// The expected gain of a task is its weight times the cost that the next trials
// may save: what it saved per trial lately, decayed, so that a task that stalls
// is left; bounded by what there is to save. It chooses tasks, never configs.

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace optrail::tuning {

struct TuningTask {
  std::string name;
  // How often the workload calls it: its share of the total is weight * cost.
  double weight = 1;
  // The least cost imaginable (the roofline's time); 0 if unknown.
  double floor_cost = 0;
};

struct TaskSchedulerOptions {
  // Every task first gets so many trials.
  int warm_up_trials = 16;
  // A task is left after so many trials in a row without a gain of at least
  // min_gain (a fraction of its cost).
  int patience_trials = 64;
  double min_gain = 0.002;
  // Trials over which the recent gain is averaged.
  int window_trials = 32;
};

class TaskScheduler {
 public:
  TaskScheduler(std::vector<TuningTask> tasks,
                const TaskSchedulerOptions& options = {});

  // The task to give the next trials to; nullopt when all have stalled or are
  // finished. The answer changes only with Report and Finish.
  absl::optional<int> Next() const;

  // `trials` (at least one) more were spent on the task and its best cost is
  // now `best_cost`; nullopt while nothing succeeded.
  void Report(int task, int trials, absl::optional<double> best_cost);

  // The task's strategy has nothing left to ask.
  void Finish(int task);

  // weight * cost that the next trial is expected to save.
  double ExpectedGain(int task) const;

  // The sum of weight * best cost of the tasks that have one.
  double TotalCost() const;

 private:
  struct State {
    TuningTask task;
    int trials = 0;
    int idle_trials = 0;
    bool finished = false;
    absl::optional<double> best_cost;
    // Saved per trial lately, as a fraction of the cost.
    double recent_gain = 0;
  };

  bool Stalled(const State& state) const;

  const TaskSchedulerOptions options_;
  std::vector<State> states_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_TASK_SCHEDULER_H_
