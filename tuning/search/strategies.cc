#include "tuning/search/strategies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

const char kDefaultStrategy[] = "bayes_opt";

namespace {

// Sorted by name.
constexpr const StrategyEntry* kStrategies[] = {
    &kBayesOpt,       &kDifferentialEvolution, &kEvolutionaryTrees,
    &kExhaustive,     &kGeneticAlgorithm,      &kGreedyIls,
    &kLatinHypercube, &kParticleSwarm,         &kPortfolio,
    &kRandomSearch,   &kSimulatedAnnealing,    &kThreePhase};

constexpr int64_t kListed = int64_t{1} << 22;
constexpr int kSampled = 1 << 15;
constexpr int kClimbers = 64;

struct Ranked {
  double prior;
  Levels levels;
};

double PriorOf(const Domain& domain, const Levels& levels) {
  return domain.Prior(levels).value_or(
      -std::numeric_limits<double>::infinity());
}

// Higher prior first; ties in the domain's order.
bool Before(const Ranked& a, const Ranked& b) {
  return a.prior != b.prior ? a.prior > b.prior : a.levels < b.levels;
}

std::vector<Ranked> List(const Domain& domain) {
  std::vector<Ranked> all;
  for (int64_t i = 0; i < *domain.size(); ++i) {
    Levels levels = domain.At(i);
    const double prior = PriorOf(domain, levels);
    all.push_back({prior, std::move(levels)});
  }
  return all;
}

std::vector<Ranked> SampleAndClimb(const Domain& domain, uint64_t seed) {
  Rng rng(seed);
  std::vector<Ranked> met;
  absl::flat_hash_set<Levels> known;
  for (int i = 0; i < kSampled; ++i) {
    Levels levels = domain.Sample(rng);
    if (!known.insert(levels).second) continue;
    const double prior = PriorOf(domain, levels);
    met.push_back({prior, std::move(levels)});
  }
  std::sort(met.begin(), met.end(), Before);
  const size_t climbers = std::min<size_t>(kClimbers, met.size());
  for (size_t i = 0; i < climbers; ++i) {
    Ranked at = met[i];
    for (bool higher = true; higher;) {
      higher = false;
      for (Levels& next :
           domain.Neighbours(at.levels, Neighbourhood::kHamming)) {
        const double prior = PriorOf(domain, next);
        Ranked ranked = {prior, std::move(next)};
        if (known.insert(ranked.levels).second) met.push_back(ranked);
        if (prior > at.prior) {
          at = std::move(ranked);
          higher = true;
        }
      }
    }
  }
  return met;
}

// TopKDomain is the k configs of another domain that its prior ranks highest:
// "rank by the prior, measure only the best". A domain that can be listed is
// ranked in full; of a larger one, the best of a uniform sample climb the prior
// to its local optima, and the best configs met on the way are kept.
class TopKDomain final : public Domain {
 public:
  // `full` must outlive this. Configs without a prior rank last.
  TopKDomain(const Domain& full, int top_k, uint64_t seed) : full_(full) {
    std::vector<Ranked> ranked = full.size() && *full.size() <= kListed
                                     ? List(full)
                                     : SampleAndClimb(full, seed);
    const size_t kept = std::min<size_t>(top_k, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + kept, ranked.end(),
                      Before);
    for (size_t i = 0; i < kept; ++i) {
      configs_.push_back(std::move(ranked[i].levels));
    }
    std::sort(configs_.begin(), configs_.end());
    for (size_t i = 0; i < kept; ++i) index_.emplace(configs_[i], i);
  }

  absl::Span<const KnobLevels> knobs() const override { return full_.knobs(); }
  bool IsValid(absl::Span<const uint16_t> levels) const override {
    return IndexOf(levels).has_value();
  }
  absl::optional<int64_t> size() const override {
    return static_cast<int64_t>(configs_.size());
  }
  Levels At(int64_t index) const override { return configs_[index]; }

  absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const override {
    const auto it = index_.find(Levels(levels.begin(), levels.end()));
    if (it == index_.end()) return absl::nullopt;
    return it->second;
  }

  Levels Sample(Rng& rng) const override {
    return configs_[rng.UniformInt(static_cast<int64_t>(configs_.size()))];
  }
  absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const override {
    return full_.Prior(levels);
  }

 private:
  const Domain& full_;
  std::vector<Levels> configs_;  // in lexicographic order
  absl::flat_hash_map<Levels, int64_t> index_;
};

// A strategy over the top_k of a domain, which it owns.
class Pruned final : public Strategy {
 public:
  Pruned(absl::string_view name, const Domain& domain,
         const StrategyOptions& options, const StrategyEntry& entry)
      : domain_(domain, options.top_k, options.seed) {
    strategy_ = entry.make(name, domain_, options);
    strategy_->Start();
  }

  absl::string_view name() const override { return strategy_->name(); }
  std::vector<Levels> Ask(int count) override { return strategy_->Ask(count); }
  void Tell(absl::Span<const Trial> trials) override {
    strategy_->Tell(trials);
  }
  bool Suggest(const Levels& levels) override {
    return strategy_->Suggest(levels);
  }
  void Overhear(int sibling, const Trial& trial) override {
    strategy_->Overhear(sibling, trial);
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
  for (const StrategyEntry* entry : kStrategies) names.push_back(entry->name);
  return names;
}

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(
    absl::string_view name, const Domain& domain,
    const StrategyOptions& options) {
  if (name == "default") name = kDefaultStrategy;
  const auto* const found =
      std::find_if(std::begin(kStrategies), std::end(kStrategies),
                   [name](const StrategyEntry* e) { return name == e->name; });
  if (found == std::end(kStrategies)) {
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
        std::make_unique<Pruned>(name, domain, options, **found));
  }
  std::unique_ptr<StrategyBase> strategy =
      (*found)->make(name, domain, options);
  strategy->Start();
  return strategy;
}

}  // namespace optrail::tuning
