#include "tuning/search/bayes_opt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tuning/search/acquisition.h"

namespace optrail::tuning {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Trials before the model is asked: far from each other, or where the sources
// were best.
constexpr int kDesign = 5;
constexpr int kDesignWithSources = 2;
constexpr int kDesignSamples = 50;
// The sources are forgotten when the trials are more likely without them by
// this much of the logarithm. Several that agree deserve more patience than one
// that nothing confirms.
constexpr double kDisbelief = 3;
constexpr double kDisbeliefOfOne = 1;

// After so many trials of siblings the model is asked from the third on.
constexpr size_t kEnoughOverheard = 6;

constexpr int kFirstFitSteps = 30;
constexpr int kFitSteps = 12;
// The parameters are fitted anew when the trials, or those overheard, have
// grown by this factor, or the trials by so many.
constexpr double kRefitGrowth = 1.1;
constexpr int kRefitTrials = 50;
// Trials a fit takes at most (it is cubic in them), and the posterior at a fit.
constexpr int kFitTrials = 200;
constexpr int kModelTrials = 600;

// Larger spaces are sampled.
constexpr int64_t kListed = int64_t{1} << 16;
}  // namespace

BayesOpt::BayesOpt(absl::string_view name, const Domain& domain,
                   const StrategyOptions& options)
    : StrategyBase(name, domain, options),
      knowledge_(domain, options.sources),
      config_features_(domain.knobs()),
      features_(std::make_unique<ConfigFeatures>(domain.knobs())),
      gp_(std::make_unique<GaussianProcess>(*features_, knowledge_.sources())),
      gp_without_sources_(std::make_unique<GaussianProcess>(*features_, 0)),
      posterior_(std::make_unique<GpPosterior>(*features_)) {
  if (!domain.size() || *domain.size() > kListed) return;
  for (int64_t i = 0; i < *domain.size(); ++i) listed_.push_back(domain.At(i));
  ListCandidates();
}

void BayesOpt::ListCandidates() {
  all_ = std::make_unique<CandidateSet>(*features_, gp_->sources());
  listed_prior_.clear();
  for (const Levels& levels : listed_) {
    const GpInput input = MakeInput(levels);
    listed_prior_.push_back(knowledge_.Expected(input.sources));
    all_->Add(input);
  }
}

void BayesOpt::ForgetSources() {
  knowledge_ = SourceKnowledge(domain(), {});
  gp_ = std::move(gp_without_sources_);
  if (all_ != nullptr) ListCandidates();
}

GpInput BayesOpt::MakeInput(const Levels& levels, int task) const {
  GpInput input = {levels, knowledge_.Values(levels)};
  if (has_siblings_) input.levels.push_back(static_cast<uint16_t>(task));
  return input;
}

double BayesOpt::ShareOf(int objective) const {
  const int objectives = options().objectives;
  if (objectives < 2) return 1;
  if (!options().weights.empty()) return options().weights[objective];
  // Random weights are equal on average.
  double low = kInfinity, high = 0;
  for (const Observation& o : history()) {
    if (!std::isfinite(o.cost)) continue;
    low = std::min(low, o.objectives[objective]);
    high = std::max(high, o.objectives[objective]);
  }
  return low > 0 && high > low ? 1 / (objectives * std::log(high / low)) : 0;
}

GpInput BayesOpt::TrialInput(const Targets& targets, int trial) const {
  GpInput input = MakeInput(history()[trial].levels);
  const Observation& o = history()[trial];
  if (o.deviation > 0) {
    const double deviation = o.deviation * ShareOf(o.predicted) / targets.unit;
    input.extra_noise = deviation * deviation;
  }
  return input;
}

double BayesOpt::LeastCost(const Targets& targets) const {
  const bool is_predicted = std::any_of(
      history().begin(), history().end(), [this](const Observation& o) {
        return o.deviation > 0 && ShareOf(o.predicted) > 0;
      });
  double least = kInfinity;
  if (is_predicted) {
    // The lowest of many predictions is a lucky one; the model has smoothed it.
    const std::vector<double> means = posterior_->MeansAtTrials();
    const size_t own = means.size() - std::min(means.size(), modelled_.size());
    for (size_t i = own; i < means.size(); ++i) {
      const Observation& o = history()[modelled_[i - own]];
      if (o.outcome != proto::OK || !std::isfinite(o.cost)) continue;
      least = std::min(least, means[i] + PriorMean(o.levels));
    }
  }
  return std::isfinite(least)
             ? least
             : *std::min_element(targets.costs.begin(), targets.costs.end());
}

void BayesOpt::JoinSiblings() {
  has_siblings_ = true;
  std::vector<KnobLevels> knobs(domain().knobs().begin(),
                                domain().knobs().end());
  KnobLevels& task = knobs.emplace_back();
  for (int i = 0; i <= kMostSiblings; ++i) task.labels.emplace_back();
  posterior_.reset();
  gp_.reset();
  gp_without_sources_.reset();
  features_ = std::make_unique<ConfigFeatures>(knobs);
  gp_ = std::make_unique<GaussianProcess>(*features_, knowledge_.sources());
  gp_without_sources_ = std::make_unique<GaussianProcess>(*features_, 0);
  posterior_ = std::make_unique<GpPosterior>(*features_);
  modelled_.clear();
  fitted_at_ = 0;
  if (all_ != nullptr) ListCandidates();
}

void BayesOpt::Overhear(int sibling, const Trial& trial) {
  if (options().objectives > 1) return;
  const Observation o = Observe(trial);
  if (o.outcome == proto::CONTENDED || o.censored) return;
  const bool works = std::isfinite(o.cost) && o.cost > 0;
  siblings_.Add({trial.levels, sibling, works ? std::log(o.cost) : kInfinity});
  overheard_ = siblings_.Usable();
  if (!has_siblings_ && !overheard_.empty()) JoinSiblings();
}

std::vector<double> BayesOpt::SiblingCosts(const Targets& targets) const {
  double sum = 0;
  int count = 0;
  for (const Observation& o : history()) {
    if (!std::isfinite(o.cost) || !(o.cost > 0)) continue;
    sum += std::log(o.cost);
    ++count;
  }
  std::vector<double> costs = LogCostsHere(
      modelled_siblings_,
      [this](const Levels& levels) { return CostOf(levels); },
      count > 0 ? absl::optional<double>(sum / count) : absl::nullopt);
  for (double& cost : costs) cost = cost / targets.unit - targets.offset;
  return costs;
}

std::vector<double> BayesOpt::SiblingValues(const Targets& targets) const {
  std::vector<double> values = SiblingCosts(targets);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] -= PriorMean(modelled_siblings_[i].levels);
  }
  return values;
}

std::vector<Levels> BayesOpt::Finalists(int count) const {
  const std::vector<double> means = posterior_->MeansAtTrials();
  std::vector<std::pair<double, int>> ranked;
  // The model has the siblings' trials before its own.
  const size_t own = means.size() - std::min(means.size(), modelled_.size());
  for (size_t i = own; i < means.size(); ++i) {
    const int trial = modelled_[i - own];
    const Observation& o = history()[trial];
    if (o.outcome != proto::OK || !std::isfinite(o.cost)) continue;
    ranked.emplace_back(means[i] + PriorMean(o.levels), trial);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<Levels> result;
  const auto add = [&](const Levels& levels) {
    if (static_cast<int>(result.size()) < count &&
        std::find(result.begin(), result.end(), levels) == result.end()) {
      result.push_back(levels);
    }
  };
  const std::vector<Levels> lowest = StrategyBase::Finalists(count);
  for (size_t i = 0; i < lowest.size(); ++i) {
    add(lowest[i]);
    if (i < ranked.size()) add(history()[ranked[i].second].levels);
  }
  return result;
}

float BayesOpt::PriorMean(const Levels& levels) const {
  return knowledge_.Expected(knowledge_.Values(levels));
}

Levels BayesOpt::FarFromAll(const std::vector<Levels>& chosen) {
  Levels farthest;
  float most = -1;
  for (int i = 0; i < kDesignSamples; ++i) {
    Levels levels = RandomUnseen();
    if (levels.empty()) return {};
    float nearest = std::numeric_limits<float>::max();
    const auto consider = [&](const Levels& other) {
      nearest =
          std::min(nearest, config_features_.SquaredDistance(levels, other));
    };
    for (const Observation& o : history()) consider(o.levels);
    for (const Levels& other : outstanding()) consider(other);
    for (const Levels& other : chosen) consider(other);
    if (nearest > most) {
      most = nearest;
      farthest = std::move(levels);
    }
    if (most == std::numeric_limits<float>::max()) break;  // the very first
  }
  return farthest;
}

std::vector<Levels> BayesOpt::Design(int count, int wanted) {
  std::vector<Levels> round;
  const auto is_new = [&](const Levels& levels) {
    return !Seen(levels) &&
           std::find(round.begin(), round.end(), levels) == round.end();
  };
  for (const Levels& levels : knowledge_.starts()) {
    if (static_cast<int>(round.size()) < std::min(count, wanted) &&
        is_new(levels)) {
      round.push_back(levels);
    }
  }
  while (static_cast<int>(round.size()) < std::min(count, wanted)) {
    Levels levels = FarFromAll(round);
    if (levels.empty() || !is_new(levels)) break;
    round.push_back(std::move(levels));
  }
  return round;
}

std::vector<double> BayesOpt::LogCosts() {
  std::vector<double> logs;
  const int objectives = options().objectives;
  if (objectives < 2 || !options().weights.empty()) {
    bool positive = true;
    for (const Observation& o : history()) {
      positive &= !std::isfinite(o.cost) || o.cost > 0;
    }
    for (const Observation& o : history()) {
      logs.push_back(positive && std::isfinite(o.cost) ? std::log(o.cost)
                                                       : o.cost);
    }
    return logs;
  }
  // Random weights, uniform on the simplex.
  std::vector<double> weights(objectives);
  double total = 0;
  for (double& weight : weights) {
    weight = -std::log(1 - rng().UniformReal());
    total += weight;
  }
  std::vector<double> low(objectives, kInfinity), high(objectives, -kInfinity);
  const auto log_of = [](double value) {
    return std::log(std::max(value, std::numeric_limits<double>::min()));
  };
  for (const Observation& o : history()) {
    if (!std::isfinite(o.cost)) continue;
    for (int i = 0; i < objectives; ++i) {
      low[i] = std::min(low[i], log_of(o.objectives[i]));
      high[i] = std::max(high[i], log_of(o.objectives[i]));
    }
  }
  for (const Observation& o : history()) {
    if (!std::isfinite(o.cost)) {
      logs.push_back(o.cost);
      continue;
    }
    double worst = 0, sum = 0;
    for (int i = 0; i < objectives; ++i) {
      const double range = std::max(high[i] - low[i], 1e-12);
      const double part =
          weights[i] / total * (log_of(o.objectives[i]) - low[i]) / range;
      worst = std::max(worst, part);
      sum += part;
    }
    logs.push_back(worst + 0.05 * sum);
  }
  return logs;
}

BayesOpt::Targets BayesOpt::MakeTargets() {
  const std::vector<double> logs = LogCosts();
  std::vector<double> good;
  for (size_t i = 0; i < logs.size(); ++i) {
    if (std::isfinite(logs[i]) && !history()[i].censored) {
      good.push_back(logs[i]);
    }
  }
  Targets targets;
  if (good.empty()) return targets;
  std::sort(good.begin(), good.end());
  const double position = kCapQuantile * static_cast<double>(good.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, good.size() - 1);
  const double cap =
      good[below] + (position - below) * (good[above] - good[below]);
  for (size_t i = 0; i < logs.size(); ++i) {
    const Observation& o = history()[i];
    if (o.outcome == proto::CONTENDED) continue;
    double value = std::isfinite(logs[i]) ? std::min(logs[i], cap) : cap;
    // Somewhere between its lower bound and what counts as slow.
    if (o.censored) value = (value + cap) / 2;
    targets.trials.push_back(static_cast<int>(i));
    targets.costs.push_back(value);
  }
  const double n = static_cast<double>(targets.costs.size());
  if (knowledge_.empty()) {
    double mean = 0, variance = 0;
    for (const double cost : targets.costs) mean += cost / n;
    for (const double cost : targets.costs) {
      variance += (cost - mean) * (cost - mean) / n;
    }
    targets.unit = variance > 1e-24 ? std::sqrt(variance) : 1;
    // The spread of the siblings' trials, too: a task begins where they are
    // best already.
    const SiblingSpread spread = SpreadOf(overheard_);
    if (spread.freedom > 0) {
      const double squares = variance * n + spread.squares;
      const double freedom = std::max(n - 1, 0.0) + spread.freedom;
      if (squares > 1e-24) targets.unit = std::sqrt(squares / freedom);
    }
  } else {
    // The first trials are all good ones: their spread says nothing.
    targets.unit = knowledge_.unit();
  }
  double offset = 0;
  for (size_t i = 0; i < targets.costs.size(); ++i) {
    double& cost = targets.costs[i];
    cost /= targets.unit;
    targets.values.push_back(cost -
                             PriorMean(history()[targets.trials[i]].levels));
    offset += targets.values.back() / n;
  }
  for (double& cost : targets.costs) cost -= offset;
  for (double& value : targets.values) value -= offset;
  targets.offset = offset;
  return targets;
}

std::vector<GpInput> BayesOpt::SiblingInputs() const {
  std::vector<GpInput> inputs;
  for (const SiblingTrial& trial : modelled_siblings_) {
    inputs.push_back(MakeInput(trial.levels, trial.sibling + 1));
  }
  return inputs;
}

void BayesOpt::Refit(Targets& targets) {
  const int n = static_cast<int>(targets.trials.size());
  // The best half matter most; random others keep the model honest elsewhere.
  const auto choose = [&](int most) {
    std::vector<int> chosen(n);
    std::iota(chosen.begin(), chosen.end(), 0);
    if (n <= most) return chosen;
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      return targets.costs[a] < targets.costs[b];
    });
    std::vector<int> rest(chosen.begin() + most / 2, chosen.end());
    rng().Shuffle(rest);
    chosen.resize(most / 2);
    chosen.insert(chosen.end(), rest.begin(), rest.begin() + (most - most / 2));
    return chosen;
  };
  modelled_siblings_ = overheard_;
  std::vector<GpInput> inputs = SiblingInputs();
  std::vector<double> values = SiblingValues(targets);
  std::vector<double> costs = SiblingCosts(targets);
  for (const int i : choose(kFitTrials)) {
    inputs.push_back(TrialInput(targets, targets.trials[i]));
    values.push_back(targets.values[i]);
    costs.push_back(targets.costs[i]);
  }
  const int steps = fitted_at_ == 0 ? kFirstFitSteps : kFitSteps;
  fitted_at_ = static_cast<int>(history().size());
  const double with = gp_->Fit(inputs, values, steps);
  if (!knowledge_.empty()) {
    double mean = 0;
    for (const double cost : costs) mean += cost / costs.size();
    for (double& cost : costs) cost -= mean;
    const double without = gp_without_sources_->Fit(inputs, costs, steps);
    if (without - with >
        (knowledge_.sources() == 1 ? kDisbeliefOfOne : kDisbelief)) {
      ForgetSources();
      targets = MakeTargets();
    }
  }

  inputs = SiblingInputs();  // without the sources, if they were forgotten
  modelled_.clear();
  std::vector<int> kept = choose(kModelTrials);
  std::sort(kept.begin(), kept.end());
  for (const int i : kept) {
    modelled_.push_back(targets.trials[i]);
    inputs.push_back(TrialInput(targets, targets.trials[i]));
  }
  posterior_->Reset(*gp_, std::move(inputs));
}

void BayesOpt::Update(Targets& targets) {
  const int n = static_cast<int>(history().size());
  if (fitted_at_ == 0 || n >= fitted_at_ * kRefitGrowth ||
      n >= fitted_at_ + kRefitTrials ||
      (overheard_.size() > modelled_siblings_.size() &&
       overheard_.size() >= modelled_siblings_.size() * kRefitGrowth)) {
    Refit(targets);
  } else {
    const auto last = modelled_.empty() ? -1 : modelled_.back();
    for (const int trial : targets.trials) {
      if (trial <= last) continue;
      posterior_->Append(TrialInput(targets, trial));
      modelled_.push_back(trial);
    }
  }
  std::vector<double> values = SiblingValues(targets);
  size_t next = 0;
  for (const int trial : modelled_) {
    while (targets.trials[next] != trial) ++next;
    values.push_back(targets.values[next]);
  }
  posterior_->SetTargets(values);
  if (fitted_at_ == n) {
    RefillPool();
  } else {
    AddNeighboursOfBest();
  }
}

std::vector<Levels> BayesOpt::Propose(int count) {
  const int started = static_cast<int>(history().size() + outstanding().size());
  const int design = knowledge_.empty() && overheard_.size() < kEnoughOverheard
                         ? kDesign
                         : kDesignWithSources;
  Targets targets = MakeTargets();
  if (targets.trials.empty()) return Design(count, count);
  if (started < design) return Design(count, design - started);
  Update(targets);
  const double best = LeastCost(targets);
  posterior_->Remember();
  for (const Levels& levels : outstanding()) {
    posterior_->Append(MakeInput(levels));
  }
  std::vector<Levels> round;
  std::vector<char> taken(pool_.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int chosen = NextCandidate(started + i, best, taken);
    if (chosen < 0) break;
    taken[chosen] = 1;
    round.push_back(pool_[chosen]);
    // Later ones of the round rest on fantasies.
    if (i < 2 && !ChosenByBound(started + i)) {
      const double mean = posterior_->mean(chosen) + pool_prior_[chosen];
      const double sd = std::sqrt(posterior_->variance(chosen));
      expected_improvement_ =
          -std::expm1(-ExpectedImprovementOf(best - mean, sd) * targets.unit);
    }
    if (i + 1 < count) posterior_->Append(MakeInput(pool_[chosen]));
  }
  posterior_->Restore();
  return round;
}

extern constexpr StrategyEntry kBayesOpt = {"bayes_opt", Make<BayesOpt>};

}  // namespace optrail::tuning
