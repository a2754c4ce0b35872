#include "tuning/session/proposer.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "tuning/search/strategies.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

template <class Function>
std::vector<proto::Config> ToConfigs(const std::vector<Levels>& list,
                                     const Function& to_config) {
  std::vector<proto::Config> configs;
  for (const Levels& levels : list) configs.push_back(to_config(levels));
  return configs;
}

}  // namespace

std::vector<proto::Config> StrategyProposer::Ask(int count) {
  return ToConfigs(strategy_->Ask(count), to_config_);
}

absl::Status StrategyProposer::TellPredicted(const proto::Trial& trial,
                                             double deviation, int objective) {
  OPTRAIL_ASSIGN_OR_RETURN(Levels levels, to_levels_(trial.config()));
  Trial told = ForStrategy(objectives_, trial, std::move(levels));
  told.deviation = deviation;
  told.predicted = objective;
  strategy_->Tell({told});
  return absl::OkStatus();
}

bool StrategyProposer::Suggest(const proto::Config& config) {
  const absl::StatusOr<Levels> levels = to_levels_(config);
  return levels.ok() && strategy_->Suggest(*levels);
}

void StrategyProposer::Overhear(int sibling, const proto::Trial& trial) {
  absl::StatusOr<Levels> levels = to_levels_(trial.config());
  if (!levels.ok()) return;
  strategy_->Overhear(sibling,
                      ForStrategy(objectives_, trial, *std::move(levels)));
}

std::vector<proto::Config> StrategyProposer::Finalists(int count) const {
  return ToConfigs(strategy_->Finalists(count), to_config_);
}

std::vector<proto::Config> StrategyProposer::Front() const {
  std::vector<Levels> front;
  for (Trial& trial : strategy_->ParetoFront()) {
    front.push_back(std::move(trial.levels));
  }
  return ToConfigs(front, to_config_);
}

absl::optional<double> StrategyProposer::ExpectedImprovement() const {
  return strategy_->ExpectedImprovement();
}

Trial ForStrategy(const std::vector<proto::Objective>& objectives,
                  const proto::Trial& trial, Levels levels) {
  Trial told;
  told.levels = std::move(levels);
  told.outcome = trial.outcome();
  for (const proto::Objective& objective : objectives) {
    const absl::optional<double> value = ValueOf(trial, objective);
    if (!value.has_value()) break;
    told.objectives.push_back(CostOf(objective, *value));
  }
  const bool known = told.objectives.size() == objectives.size();
  if (!known && told.outcome == proto::OK && !told.objectives.empty()) {
    told.outcome = proto::CONTENDED;
  }
  return told;
}

absl::StatusOr<std::unique_ptr<Proposer>> MakeProposer(
    const BoundSpace& space, const proto::Session& begun,
    const ProposerOptions& options) {
  const std::vector<proto::Objective> objectives = ObjectivesOf(begun);
  StrategyOptions strategy_options;
  strategy_options.seed = begun.seed();
  strategy_options.batch = options.batch;
  strategy_options.budget = static_cast<int>(begun.budget().trials());
  strategy_options.sources = options.sources;
  strategy_options.objectives = static_cast<int>(objectives.size());
  // Whoever pays for more trials than that gets them.
  if (const int top_k = static_cast<int>(space.top_k()); top_k > 0) {
    strategy_options.top_k = std::max(top_k, strategy_options.budget);
  }
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].has_weight()) {
      strategy_options.weights.resize(objectives.size(), 1);
      strategy_options.weights[i] = objectives[i].weight();
    }
    if (objectives[i].has_limit()) {
      strategy_options.limits.push_back(
          {static_cast<int>(i), CostOf(objectives[i], objectives[i].limit())});
    }
  }
  for (const proto::Trial& known : begun.trials()) {
    OPTRAIL_ASSIGN_OR_RETURN(Levels levels, space.ToLevels(known.config()));
    strategy_options.warm_start.push_back(
        ForStrategy(objectives, known, std::move(levels)));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      std::unique_ptr<Strategy> strategy,
      MakeStrategy(begun.strategy(), space, strategy_options));
  return std::make_unique<StrategyProposer>(
      objectives, std::move(strategy),
      [&space](const Levels& levels) { return space.ToConfig(levels); },
      [&space](const proto::Config& config) { return space.ToLevels(config); });
}

}  // namespace optrail::tuning
