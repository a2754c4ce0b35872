#include "tuning/replay/evaluation/task_search.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tuning/replay/replay_problem.h"
#include "tuning/replay/score.h"
#include "tuning/search/strategies.h"

namespace optrail::tuning {

TaskSearch::TaskSearch(const Recording& recording,
                       const TaskSearchOptions& options)
    : recording_(recording),
      domain_(recording),
      optimum_ms_(OptimumMs(recording)),
      most_trials_(options.most_trials) {
  std::vector<double> times_ms;
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome == proto::OK) times_ms.push_back(config.time_ms);
  }
  const double start_ms = options.start_ms;
  cost_ = (start_ms > 0 ? start_ms : Median(times_ms)) / optimum_ms_;
}

absl::StatusOr<std::unique_ptr<TaskSearch>> TaskSearch::Begin(
    const Recording& recording, const TaskSearchOptions& options) {
  std::unique_ptr<TaskSearch> search(new TaskSearch(recording, options));
  StrategyOptions strategy;
  strategy.seed = options.seed;
  OPTRAIL_ASSIGN_OR_RETURN(
      search->strategy_,
      MakeStrategy(options.strategy, search->domain_, strategy));
  return search;
}

bool TaskSearch::Advance() {
  if (trials_ == most_trials_) return false;
  const std::vector<Levels> asked = strategy_->Ask(1);
  if (asked.empty()) return false;
  expected_improvement_ = strategy_->ExpectedImprovement();
  const RecordedConfig& config = recording_.configs[*domain_.IndexOf(asked[0])];
  strategy_->Tell({TrialOf(config)});
  ++trials_;
  last_ = &config;
  if (config.outcome != proto::OK || config.time_ms / optimum_ms_ >= cost_) {
    return true;
  }
  cost_ = config.time_ms / optimum_ms_;
  best_ = config.levels;
  return true;
}

void TaskSearch::Overhear(int sibling, const TaskSearch& other) {
  Trial trial = TrialOf(*other.last_);
  const absl::optional<Levels> levels = LevelsOf(other.TextOf(trial.levels));
  if (!levels) return;
  trial.levels = *levels;
  strategy_->Overhear(sibling, trial);
}

bool TaskSearch::Suggest(absl::string_view text) {
  const absl::optional<Levels> levels = LevelsOf(text);
  return levels && strategy_->Suggest(*levels);
}

std::string TaskSearch::TextOf(const Levels& levels) const {
  std::string text;
  for (size_t k = 0; k < levels.size(); ++k) {
    absl::StrAppend(&text, domain_.knobs()[k].labels[levels[k]], ",");
  }
  return text;
}

absl::optional<Levels> TaskSearch::LevelsOf(absl::string_view text) const {
  const std::vector<absl::string_view> labels =
      absl::StrSplit(text, ',', absl::SkipEmpty());
  if (labels.size() != domain_.knobs().size()) return absl::nullopt;
  Levels levels;
  for (size_t k = 0; k < labels.size(); ++k) {
    const std::vector<std::string>& known = domain_.knobs()[k].labels;
    const auto found = std::find(known.begin(), known.end(), labels[k]);
    if (found == known.end()) return absl::nullopt;
    levels.push_back(static_cast<uint16_t>(found - known.begin()));
  }
  return levels;
}

}  // namespace optrail::tuning
