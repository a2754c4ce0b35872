#include "tuning/search/bayes_opt.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace optrail::tuning {
namespace {
double Env(const char* n, double d) {
  const char* e = getenv(n);
  return e ? atof(e) : d;
}

const int kDesign = Env("INIT", 5);
constexpr int kDesignWithSources = 2;
const int kAcq = Env("ACQ", 2);
const double kLo = Env("KLO", 0.8), kHi = Env("KHI", 3.0);
const double kSdx = Env("SDX", 1.2);

constexpr int kDesignSamples = 50;

const double kCapQuantile = Env("CAP", .80);
const double kKappa = Env("KAPPA", 2.4);

const int kFirstFitSteps = 30;
const int kFitSteps = Env("IT2", 12);
const double kRefitGrowth = Env("REFIT", 1.1);
constexpr int kRefitTrials = 50;  // or after so many
const int kFitTrials = Env("FITMAX", 200);
// Trials the posterior takes at most at a fit.
constexpr int kModelTrials = 600;

// Larger spaces are sampled.
constexpr int64_t kListed = 1 << 16;
const int kPool = Env("POOL", 4096);
constexpr int kSampled = 3072;
constexpr int kBestWithNeighbours = 5;

// E[max(0, -(x))] for x normal.
double ExpectedGain(double gap, double sd) {
  const double z = gap / sd;
  return sd * (std::exp(-0.5 * z * z) * 0.3989422804014327 +
               z * 0.5 * std::erfc(-z * 0.7071067811865476));
}

double LogEi(double gap, double sd) {
  const double z = gap / sd;
  if (z > -5) return std::log(ExpectedGain(gap, sd) + 1e-300);
  return std::log(sd) - 0.5 * z * z - 0.91893853 - 2 * std::log(-z) +
         std::log1p(-3 / (z * z));
}
}  // namespace

BayesOpt::BayesOpt(absl::string_view name, const Domain& domain,
                   const StrategyOptions& options)
    : StrategyBase(name, domain, options),
      features_(domain.knobs()),
      gp_(features_, static_cast<int>(options.sources.size())),
      posterior_(features_) {
  for (const TransferSource& source : options.sources) {
    source_values_.emplace_back();
    source_bests_.emplace_back();
    std::vector<double> costs;
    double least = std::numeric_limits<double>::infinity();
    for (const Trial& trial : source.trials) {
      if (trial.outcome != TrialOutcome::kOk || trial.objectives.empty()) {
        continue;
      }
      const double cost = trial.objectives[0];
      if (!(cost > 0) || !std::isfinite(cost)) continue;
      costs.push_back(std::log(cost));
      if (cost < least && domain.IsValid(trial.levels)) {
        least = cost;
        source_bests_.back() = trial.levels;
      }
    }
    if (costs.empty()) continue;
    std::sort(costs.begin(), costs.end());
    const double cap =
        costs[static_cast<size_t>((costs.size() - 1) * kCapQuantile)];
    const auto capped = [&](const Trial& trial) {
      const bool ok = trial.outcome == TrialOutcome::kOk &&
                      !trial.objectives.empty() && trial.objectives[0] > 0;
      return ok ? std::min(cap, std::log(trial.objectives[0])) : cap;
    };
    double sum = 0, squares = 0;
    for (const Trial& trial : source.trials) {
      const double value = capped(trial);
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(source.trials.size());
    const double mean = sum / n;
    const double sd = std::sqrt(std::max(squares / n - mean * mean, 1e-12));
    for (const Trial& trial : source.trials) {
      source_values_.back()[trial.levels] =
          static_cast<float>((capped(trial) - mean) / sd);
    }
  }
  if (domain.size() && *domain.size() <= kListed) {
    all_ = std::make_unique<CandidateSet>(features_, gp_.sources());
    for (int64_t i = 0; i < *domain.size(); ++i) {
      listed_.push_back(domain.At(i));
      all_->Add(MakeInput(listed_.back()));
    }
  }
}

GpInput BayesOpt::MakeInput(const Levels& levels) const {
  GpInput input;
  input.levels = levels;
  for (const auto& values : source_values_) {
    const auto it = values.find(levels);
    input.sources.push_back(it == values.end() ? 0.0f : it->second);
  }
  return input;
}

Levels BayesOpt::NextOfDesign(const std::vector<Levels>& chosen) {
  for (const Levels& levels : source_bests_) {
    if (!levels.empty() && !Seen(levels) &&
        std::find(chosen.begin(), chosen.end(), levels) == chosen.end()) {
      return levels;
    }
  }
  Levels farthest;
  float most = -1;
  for (int i = 0; i < kDesignSamples; ++i) {
    Levels levels = RandomUnseen();
    if (levels.empty()) return {};
    float nearest = std::numeric_limits<float>::max();
    const auto consider = [&](const Levels& other) {
      nearest = std::min(nearest, features_.SquaredDistance(levels, other));
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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
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
    if (o.outcome == TrialOutcome::kContended) continue;
    double value = std::isfinite(logs[i]) ? std::min(logs[i], cap) : cap;
    // Somewhere between its lower bound and what counts as slow.
    if (o.censored) value = (value + cap) / 2;
    targets.trials.push_back(static_cast<int>(i));
    targets.values.push_back(value);
  }
  const double n = static_cast<double>(targets.values.size());
  double mean = 0, variance = 0;
  for (const double value : targets.values) mean += value / n;
  for (double& value : targets.values) {
    value -= mean;
    variance += value * value / n;
  }
  targets.unit = variance > 1e-24 ? std::sqrt(variance) : 1;
  for (double& value : targets.values) value /= targets.unit;
  return targets;
}

void BayesOpt::Refit(const Targets& targets) {
  const int n = static_cast<int>(targets.trials.size());
  // The best half matter most; random others keep the model honest elsewhere.
  const auto choose = [&](int most) {
    std::vector<int> chosen(n);
    std::iota(chosen.begin(), chosen.end(), 0);
    if (n <= most) return chosen;
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      return targets.values[a] < targets.values[b];
    });
    std::vector<int> rest(chosen.begin() + most / 2, chosen.end());
    rng().Shuffle(rest);
    chosen.resize(most / 2);
    chosen.insert(chosen.end(), rest.begin(), rest.begin() + (most - most / 2));
    return chosen;
  };
  std::vector<GpInput> inputs;
  std::vector<double> values;
  for (const int i : choose(kFitTrials)) {
    inputs.push_back(MakeInput(history()[targets.trials[i]].levels));
    values.push_back(targets.values[i]);
  }
  gp_.Fit(inputs, values, fitted_at_ == 0 ? kFirstFitSteps : kFitSteps);
  fitted_at_ = static_cast<int>(history().size());

  inputs.clear();
  modelled_.clear();
  std::vector<int> kept = choose(kModelTrials);
  std::sort(kept.begin(), kept.end());
  for (const int i : kept) {
    modelled_.push_back(targets.trials[i]);
    inputs.push_back(MakeInput(history()[targets.trials[i]].levels));
  }
  posterior_.Reset(gp_, std::move(inputs));
}

void BayesOpt::RefillPool() {
  pool_.clear();
  if (all_ != nullptr && listed_.size() <= static_cast<size_t>(kPool)) {
    pool_ = listed_;
    posterior_.Keep(*all_);
    return;
  }
  std::vector<Levels> sampled;
  CandidateSet some(features_, gp_.sources());
  if (all_ == nullptr) {
    absl::flat_hash_set<Levels> known;
    for (int i = 0; i < kSampled; ++i) {
      Levels levels = domain().Sample(rng());
      if (Seen(levels) || !known.insert(levels).second) continue;
      sampled.push_back(std::move(levels));
    }
    for (const Levels& best : Finalists(kBestWithNeighbours)) {
      for (Levels& levels :
           domain().Neighbours(best, Neighbourhood::kHamming)) {
        if (Seen(levels) || !known.insert(levels).second) continue;
        sampled.push_back(std::move(levels));
      }
    }
    for (const Levels& levels : sampled) some.Add(MakeInput(levels));
    pool_ = std::move(sampled);
    posterior_.Keep(std::move(some));
    neighbours_of_ = best();
    return;
  }
  std::vector<float> mean, variance;
  posterior_.Predict(*all_, mean, variance);
  std::vector<float> score(mean.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    score[i] = mean[i] - static_cast<float>(kKappa) * std::sqrt(variance[i]);
  }
  std::vector<int> order(mean.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + kPool, order.end(),
                   [&](int a, int b) {
                     return score[a] != score[b] ? score[a] < score[b] : a < b;
                   });
  order.resize(kPool);
  std::sort(order.begin(), order.end());
  for (const int i : order) {
    pool_.push_back(listed_[i]);
    some.Add(MakeInput(listed_[i]));
  }
  posterior_.Keep(std::move(some));
}

void BayesOpt::AddNeighboursOfBest() {
  if (all_ != nullptr || best() == neighbours_of_) return;
  neighbours_of_ = best();
  std::vector<GpInput> inputs;
  for (Levels& levels :
       domain().Neighbours(history()[best()].levels, Neighbourhood::kHamming)) {
    if (Seen(levels)) continue;
    inputs.push_back(MakeInput(levels));
    pool_.push_back(std::move(levels));
  }
  posterior_.Extend(inputs);
}

void BayesOpt::Update(const Targets& targets) {
  const int n = static_cast<int>(history().size());
  if (fitted_at_ == 0 || n >= fitted_at_ * kRefitGrowth ||
      n >= fitted_at_ + kRefitTrials) {
    Refit(targets);
  } else {
    const auto last = modelled_.empty() ? -1 : modelled_.back();
    for (const int trial : targets.trials) {
      if (trial <= last) continue;
      posterior_.Append(MakeInput(history()[trial].levels));
      modelled_.push_back(trial);
    }
  }
  std::vector<double> values;
  size_t next = 0;
  for (const int trial : modelled_) {
    while (targets.trials[next] != trial) ++next;
    values.push_back(targets.values[next]);
  }
  posterior_.SetTargets(values);
  if (fitted_at_ == n) {
    RefillPool();
  } else {
    AddNeighboursOfBest();
  }
}

std::vector<Levels> BayesOpt::Propose(int count) {
  std::vector<Levels> round;
  const int started = static_cast<int>(history().size() + outstanding().size());
  int design = kDesign;
  if (!source_bests_.empty()) {
    design = static_cast<int>(source_bests_.size()) + kDesignWithSources;
  }
  const Targets targets = MakeTargets();
  if (started < design || targets.trials.empty()) {
    while (static_cast<int>(round.size()) < count) {
      Levels levels = NextOfDesign(round);
      if (levels.empty() ||
          std::find(round.begin(), round.end(), levels) != round.end()) {
        break;
      }
      round.push_back(std::move(levels));
      if (!targets.trials.empty() &&
          started + static_cast<int>(round.size()) >= design) {
        break;
      }
    }
    return round;
  }
  Update(targets);
  const double best =
      *std::min_element(targets.values.begin(), targets.values.end());
  posterior_.Remember();
  for (const Levels& levels : outstanding()) {
    posterior_.Append(MakeInput(levels));
  }
  std::vector<char> taken(pool_.size(), 0);
  for (int i = 0; i < count; ++i) {
    double kappa = kKappa;
    if (kAcq == 3) kappa = kLo + (kHi - kLo) * rng().UniformReal();
    if (kAcq == 4) kappa = (started + i) % 2 == 0 ? kLo : kHi;
    int chosen = -1;
    double lowest = std::numeric_limits<double>::infinity();
    for (int c = 0; c < posterior_.pool_size(); ++c) {
      const double sdd = std::sqrt(posterior_.variance(c));
      double score;
      if (kAcq == 0 || kAcq >= 3 || (kAcq == 2 && (started + i) % 2 == 0)) {
        score = posterior_.mean(c) - kappa * sdd;
      } else {
        score = -LogEi(best - posterior_.mean(c), kSdx * sdd);
      }
      if (score < lowest && !taken[c] && !Seen(pool_[c])) {
        lowest = score;
        chosen = c;
      }
    }
    if (chosen < 0) break;
    taken[chosen] = 1;
    round.push_back(pool_[chosen]);
    if (i == 0) {
      const double sd = std::sqrt(posterior_.variance(chosen));
      const double gain = ExpectedGain(best - posterior_.mean(chosen), sd);
      expected_improvement_ = 1 - std::exp(-gain * targets.unit);
    }
    if (i + 1 < count) posterior_.Append(MakeInput(pool_[chosen]));
  }
  posterior_.Restore();
  return round;
}

}  // namespace optrail::tuning
