#include "tuning/search/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace optrail::tuning {
namespace {

// What a task that has just had its first success may still gain per trial:
// kernels are often twice as fast after a few dozen trials.
constexpr double kFirstGain = 0.02;

}  // namespace

TaskScheduler::TaskScheduler(std::vector<TuningTask> tasks,
                             const TaskSchedulerOptions& options)
    : options_(options) {
  for (TuningTask& task : tasks) {
    State state;
    state.task = std::move(task);
    state.recent_gain = kFirstGain;
    states_.push_back(std::move(state));
  }
}

bool TaskScheduler::Stalled(const State& state) const {
  return state.finished || state.idle_trials >= options_.patience_trials;
}

double TaskScheduler::ExpectedGain(int task) const {
  const State& state = states_[task];
  if (Stalled(state) || !state.best_cost) return 0;
  const double saved = std::min(state.recent_gain * *state.best_cost,
                                *state.best_cost - state.task.floor_cost);
  return state.task.weight * std::max(saved, 0.0);
}

absl::optional<int> TaskScheduler::Next() const {
  absl::optional<int> next;
  // The warm-up first, the fewest trials first.
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& state = states_[i];
    if (Stalled(state) || state.trials >= options_.warm_up_trials) continue;
    if (!next || state.trials < states_[*next].trials) next = i;
  }
  if (next) return next;
  double most = -1;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    if (Stalled(states_[i])) continue;
    const double gain = ExpectedGain(i);
    if (gain > most) {
      most = gain;
      next = i;
    }
  }
  return next;
}

void TaskScheduler::Report(int task, int trials,
                           absl::optional<double> best_cost) {
  OPTRAIL_CHECK(task >= 0 && task < static_cast<int>(states_.size()))
      << "task " << task;
  State& state = states_[task];
  trials = std::max(trials, 1);
  state.trials += trials;
  double gain = 0;
  if (best_cost && !state.best_cost) {
    state.best_cost = best_cost;
    state.idle_trials = 0;
    return;
  }
  if (best_cost && *best_cost < *state.best_cost) {
    gain = 1 - *best_cost / *state.best_cost;
    state.best_cost = best_cost;
  }
  state.idle_trials =
      gain >= options_.min_gain ? 0 : state.idle_trials + trials;
  // An exponential average whose memory is the window.
  const double keep = std::exp(-static_cast<double>(trials) /
                               std::max(options_.window_trials, 1));
  state.recent_gain = keep * state.recent_gain + (1 - keep) * gain / trials;
}

void TaskScheduler::Finish(int task) { states_[task].finished = true; }

double TaskScheduler::TotalCost() const {
  double total = 0;
  for (const State& state : states_) {
    total += state.task.weight * state.best_cost.value_or(0);
  }
  return total;
}

}  // namespace optrail::tuning
