#include "tuning/search/strategies.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tuning/search/bayes_opt.h"
#include "tuning/search/differential_evolution.h"
#include "tuning/search/evolutionary_trees.h"
#include "tuning/search/exhaustive.h"
#include "tuning/search/genetic_algorithm.h"
#include "tuning/search/greedy_ils.h"
#include "tuning/search/latin_hypercube.h"
#include "tuning/search/particle_swarm.h"
#include "tuning/search/portfolio.h"
#include "tuning/search/random_search.h"
#include "tuning/search/simulated_annealing.h"
#include "tuning/search/strategy_base.h"
#include "tuning/search/three_phase.h"
#include "tuning/search/top_k_domain.h"

namespace optrail::tuning {

const char kDefaultStrategy[] = "bayes_opt";

namespace {

using Factory = std::unique_ptr<StrategyBase> (*)(absl::string_view name,
                                                  const Domain& domain,
                                                  const StrategyOptions&);

template <typename T>
std::unique_ptr<StrategyBase> Make(absl::string_view name, const Domain& domain,
                                   const StrategyOptions& options) {
  return std::make_unique<T>(name, domain, options);
}

struct Entry {
  const char* name;
  Factory factory;
};

// Sorted by name.
constexpr Entry kStrategies[] = {
    {"bayes_opt", Make<BayesOpt>},
    {"differential_evolution", Make<DifferentialEvolution>},
    {"evolutionary_trees", Make<EvolutionaryTrees>},
    {"exhaustive", Make<Exhaustive>},
    {"genetic_algorithm", Make<GeneticAlgorithm>},
    {"greedy_ils", Make<GreedyIls>},
    {"latin_hypercube", Make<LatinHypercube>},
    {"particle_swarm", Make<ParticleSwarm>},
    {"portfolio", Make<Portfolio>},
    {"random", Make<RandomSearch>},
    {"simulated_annealing", Make<SimulatedAnnealing>},
    {"three_phase", Make<ThreePhase>},
};

// A strategy over the top_k of a domain, which it owns.
class Pruned final : public Strategy {
 public:
  Pruned(absl::string_view name, const Domain& domain,
         const StrategyOptions& options, Factory factory)
      : domain_(domain, options.top_k, options.seed) {
    strategy_ = factory(name, domain_, options);
    strategy_->Start();
  }

  absl::string_view name() const override { return strategy_->name(); }
  std::vector<Levels> Ask(int count) override { return strategy_->Ask(count); }
  void Tell(absl::Span<const Trial> trials) override {
    strategy_->Tell(trials);
  }
  std::string StopReason() const override { return strategy_->StopReason(); }
  absl::optional<double> ExpectedImprovement() const override {
    return strategy_->ExpectedImprovement();
  }
  std::vector<Levels> Finalists(int count) const override {
    return strategy_->Finalists(count);
  }
  std::vector<Trial> ParetoFront() const override {
    return strategy_->ParetoFront();
  }

 private:
  const TopKDomain domain_;
  std::unique_ptr<StrategyBase> strategy_;
};

absl::Status CheckTrials(const std::vector<Trial>& trials,
                         absl::string_view what, const Domain& domain) {
  for (size_t i = 0; i < trials.size(); ++i) {
    const Levels& levels = trials[i].levels;
    if (levels.size() != domain.knobs().size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " trial ", i, " has ", levels.size(), " levels, expected ",
          domain.knobs().size(), " (one per knob)"));
    }
    for (size_t k = 0; k < levels.size(); ++k) {
      if (levels[k] >= domain.knobs()[k].size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, " trial ", i, ": level ", levels[k],
                         " of knob '", domain.knobs()[k].name,
                         "', expected less than ", domain.knobs()[k].size()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const Domain& domain, const StrategyOptions& o) {
  if (domain.size() && *domain.size() == 0) {
    return absl::InvalidArgumentError(
        "the space has no valid config; check its constraints");
  }
  if (o.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch is ", o.batch, ", expected at least 1"));
  }
  if (o.objectives < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("objectives is ", o.objectives, ", expected at least 1"));
  }
  if (!o.weights.empty()) {
    if (static_cast<int>(o.weights.size()) != o.objectives) {
      return absl::InvalidArgumentError(
          absl::StrCat(o.weights.size(), " weights for ", o.objectives,
                       " objectives, expected one each or none"));
    }
    double sum = 0;
    for (const double weight : o.weights) {
      if (!(weight >= 0) || !std::isfinite(weight)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "weight ", weight, ", expected a finite number not below 0"));
      }
      sum += weight;
    }
    if (sum <= 0) {
      return absl::InvalidArgumentError("all weights are 0");
    }
  }
  for (const ObjectiveLimit& limit : o.limits) {
    if (limit.objective < 0 || limit.objective >= o.objectives) {
      return absl::InvalidArgumentError(
          absl::StrCat("limit on objective ", limit.objective,
                       ", expected 0 to ", o.objectives - 1));
    }
    if (std::isnan(limit.at_most)) {
      return absl::InvalidArgumentError("limit is not a number");
    }
  }
  if (o.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k is ", o.top_k, ", expected 0 (all) or more"));
  }
  if (o.top_k > 0) {
    Rng rng(o.seed);
    if (!domain.Prior(domain.Sample(rng))) {
      return absl::InvalidArgumentError(
          "top_k needs a prior, and the space declares none");
    }
  }
  OPTRAIL_RETURN_IF_ERROR(CheckTrials(o.warm_start, "warm start", domain));
  for (const TransferSource& source : o.sources) {
    OPTRAIL_RETURN_IF_ERROR(CheckTrials(
        source.trials, absl::StrCat("source '", source.name, "'"), domain));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kStrategies) names.push_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(
    absl::string_view name, const Domain& domain,
    const StrategyOptions& options) {
  if (name == "default") name = kDefaultStrategy;
  const auto* entry =
      std::find_if(std::begin(kStrategies), std::end(kStrategies),
                   [name](const Entry& e) { return name == e.name; });
  if (entry == std::end(kStrategies)) {
    return absl::NotFoundError(absl::StrCat(
        "unknown strategy '", name, "', expected default or one of ",
        absl::StrJoin(StrategyNames(), ", ")));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(domain, options));
  if (name == "exhaustive" && !domain.size() && options.top_k == 0) {
    return absl::InvalidArgumentError(
        "the space is too large to enumerate: choose another strategy than "
        "exhaustive");
  }
  if (options.top_k > 0) {
    return std::unique_ptr<Strategy>(
        std::make_unique<Pruned>(name, domain, options, entry->factory));
  }
  std::unique_ptr<StrategyBase> strategy =
      entry->factory(name, domain, options);
  strategy->Start();
  return strategy;
}

}  // namespace optrail::tuning
