#include "tuning/session/proposer.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "tuning/search/strategies.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

class StrategyProposer : public Proposer {
 public:
  StrategyProposer(const BoundSpace& space,
                   std::vector<proto::Objective> objectives,
                   std::unique_ptr<Strategy> strategy)
      : space_(space),
        objectives_(std::move(objectives)),
        strategy_(std::move(strategy)) {}

  std::vector<proto::Config> Ask(int count) override {
    return ToConfigs(strategy_->Ask(count));
  }

  absl::Status Tell(const proto::Trial& trial) override {
    OPTRAIL_ASSIGN_OR_RETURN(Levels levels, space_.ToLevels(trial.config()));
    const Trial told = ForStrategy(objectives_, trial, std::move(levels));
    strategy_->Tell(absl::MakeConstSpan(&told, 1));
    return absl::OkStatus();
  }

  std::vector<proto::Config> Finalists(int count) const override {
    return ToConfigs(strategy_->Finalists(count));
  }

  std::vector<proto::Config> Front() const override {
    std::vector<Levels> front;
    for (Trial& trial : strategy_->ParetoFront()) {
      front.push_back(std::move(trial.levels));
    }
    return ToConfigs(front);
  }

  absl::optional<double> ExpectedImprovement() const override {
    return strategy_->ExpectedImprovement();
  }

 private:
  std::vector<proto::Config> ToConfigs(const std::vector<Levels>& list) const {
    std::vector<proto::Config> configs;
    for (const Levels& levels : list)
      configs.push_back(space_.ToConfig(levels));
    return configs;
  }

  const BoundSpace& space_;
  const std::vector<proto::Objective> objectives_;
  const std::unique_ptr<Strategy> strategy_;
};

}  // namespace

Trial ForStrategy(const std::vector<proto::Objective>& objectives,
                  const proto::Trial& trial, Levels levels) {
  Trial told;
  told.levels = std::move(levels);
  // The enums mirror each other; an outcome of a newer writer is a failure.
  told.outcome = static_cast<TrialOutcome>(trial.outcome());
  for (const proto::Objective& objective : objectives) {
    const absl::optional<double> value = ValueOf(trial, objective);
    if (!value.has_value()) break;
    told.objectives.push_back(CostOf(objective, *value));
  }
  const bool known = told.objectives.size() == objectives.size();
  if (!known && told.outcome == TrialOutcome::kOk && !told.objectives.empty()) {
    told.outcome = TrialOutcome::kContended;
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
  return std::make_unique<StrategyProposer>(space, objectives,
                                            std::move(strategy));
}

}  // namespace optrail::tuning
