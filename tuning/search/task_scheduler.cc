#include "tuning/search/task_scheduler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace optrail::tuning {
namespace {

// A model that expects nothing at all may be wrong.
constexpr double kLeastExpectedImprovement = 1e-7;

// How much longer the warm-up lasts while nothing succeeds.
constexpr int kFailingWarmUps = 4;

// The warm-up of all tasks takes about this part of a total: each task's part
// is rounded up to whole trials. At three to eight trials a task, four of them
// would be half of the total and more.
constexpr double kWarmUpShare = 0.25;

// Gains become rarer than the mean of the later half says. Chosen, with
// prior_gain, on two of three sets of recordings and better on the third,
// whichever that is (docs/lab/search.md).
constexpr double kRarer = 0.25;

std::vector<std::vector<int>> SiblingsOf(const std::vector<TuningTask>& tasks) {
  std::vector<std::vector<int>> siblings;
  for (const TuningTask& task : tasks) siblings.push_back(task.siblings);
  return siblings;
}

}  // namespace

int WarmUpTrials(int64_t total_trials, int tasks) {
  const double per_task =
      std::ceil(kWarmUpShare * static_cast<double>(total_trials) / tasks);
  return static_cast<int>(
      std::clamp<double>(per_task, 1, TaskSchedulerOptions().warm_up_trials));
}

TaskScheduler::TaskScheduler(std::vector<TuningTask> tasks,
                             const TaskSchedulerOptions& options)
    : options_(options), winners_(SiblingsOf(tasks)) {
  for (TuningTask& task : tasks) {
    State state;
    state.task = std::move(task);
    states_.push_back(std::move(state));
  }
}

bool TaskScheduler::HasStalled(int task) const {
  return states_[task].idle_trials >= options_.patience_trials &&
         Promise(task) == 0 && !winners_.IsUnderWay(task);
}

bool TaskScheduler::AllStalled() const {
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    if (!states_[i].finished && !HasStalled(i)) return false;
  }
  return true;
}

bool TaskScheduler::WarmsUp(const State& state) const {
  const int trials = state.task.siblings.empty() ? options_.warm_up_trials : 1;
  return state.trials <
         (state.progress.empty() ? kFailingWarmUps * trials : trials);
}

double TaskScheduler::Promise(int task) const {
  const absl::optional<SharedWinners::Offer> offer = winners_.For(task);
  return offer ? -std::expm1(-offer->gain) : 0;
}

absl::optional<std::string> TaskScheduler::TakeSuggestion(int task) {
  const absl::optional<SharedWinners::Offer> offer = winners_.For(task);
  if (!offer) return absl::nullopt;
  winners_.Take(task, *offer);
  return offer->config;
}

double TaskScheduler::ExpectedGain(int task) const {
  const State& state = states_[task];
  if (state.finished || state.progress.empty()) return 0;
  const double cost = state.progress.back().second;
  const double half = state.trials / 2.0;
  // The last batch that ended in the first half; if none did, the first.
  auto before =
      std::upper_bound(state.progress.begin(), state.progress.end(), half,
                       [](double trials, const std::pair<int, double>& point) {
                         return trials < point.first;
                       });
  if (before != state.progress.begin()) --before;
  double fraction =
      (std::log(before->second / cost) + options_.prior_gain) / half;
  if (state.expected_improvement) {
    fraction = std::sqrt(fraction * std::max(*state.expected_improvement,
                                             kLeastExpectedImprovement));
  }
  fraction *= std::pow(state.trials, -kRarer);
  fraction = std::max(fraction, Promise(task));
  const double saved = std::clamp(fraction * cost, 0.0,
                                  std::max(cost - state.task.floor_cost, 0.0));
  return state.task.weight * saved * state.trials / state.effort;
}

TaskScheduler::Tier TaskScheduler::TierOf(int task) const {
  const State& state = states_[task];
  if (HasStalled(task)) return Tier::kStalled;
  return state.held && !WarmsUp(state) ? Tier::kHeld : Tier::kOpen;
}

absl::optional<int> TaskScheduler::Next() const {
  Tier first = Tier::kStalled;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    if (!states_[i].finished) first = std::min(first, TierOf(i));
  }
  absl::optional<int> warm_up, most;
  for (int i = 0; i < static_cast<int>(states_.size()); ++i) {
    const State& state = states_[i];
    if (state.finished || TierOf(i) != first) continue;
    // The fewest trials first.
    if (WarmsUp(state) &&
        (!warm_up || state.trials < states_[*warm_up].trials)) {
      warm_up = i;
    }
    if (!most || ExpectedGain(i) > ExpectedGain(*most)) most = i;
  }
  return warm_up ? warm_up : most;
}

void TaskScheduler::Report(int task, const TaskReport& report) {
  OPTRAIL_CHECK(task >= 0 && task < static_cast<int>(states_.size()))
      << "task " << task;
  State& state = states_[task];
  const int trials = std::max(report.trials, 1);
  state.trials += trials;
  state.effort += report.effort > 0 ? report.effort : trials;
  state.expected_improvement = report.expected_improvement;
  state.idle_trials += trials;
  if (!report.best_cost) {
    // Nothing has worked, the suggestion neither.
    if (report.suggestion_answered) winners_.Refuse(task);
    return;
  }
  winners_.Report(task, report.best_config, *report.best_cost,
                  report.suggestion_answered);
  const double before =
      state.progress.empty() ? *report.best_cost : state.progress.back().second;
  if (state.progress.empty() ||
      *report.best_cost <= before * (1 - options_.min_gain)) {
    state.idle_trials = 0;
  }
  state.progress.push_back({state.trials, std::min(*report.best_cost, before)});
}

void TaskScheduler::Hold(int task) { states_[task].held = true; }

void TaskScheduler::Finish(int task) { states_[task].finished = true; }

}  // namespace optrail::tuning
