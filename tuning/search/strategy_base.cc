#include "tuning/search/strategy_base.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats/pareto.h"

namespace optrail::tuning {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Draws before the unseen configs are listed instead.
constexpr int kMaxDraws = 200;
// The same in a space that can't be listed: then it counts as exhausted.
constexpr int kMaxDrawsUnlisted = 20000;

void Remove(const Levels& levels, std::vector<Levels>& from) {
  from.erase(std::remove(from.begin(), from.end(), levels), from.end());
}

}  // namespace

StrategyBase::StrategyBase(absl::string_view name, const Domain& domain,
                           const StrategyOptions& options)
    : name_(name), domain_(domain), options_(options), rng_(options.seed) {}

void StrategyBase::Start() {
  for (const Trial& trial : options_.warm_start) {
    if (told_.contains(trial.levels)) continue;
    seen_.insert(trial.levels);
    Record(trial);
  }
}

std::vector<Levels> StrategyBase::Ask(int count) {
  if (count <= 0) return {};
  if (!undelivered_.empty()) {
    const int taken = std::min<int>(count, undelivered_.size());
    std::vector<Levels> round(undelivered_.begin(),
                              undelivered_.begin() + taken);
    undelivered_.erase(undelivered_.begin(), undelivered_.begin() + taken);
    return round;
  }
  return NextRound(count);
}

void StrategyBase::Tell(absl::Span<const Trial> trials) {
  for (const Trial& trial : trials) {
    if (told_.contains(trial.levels)) continue;
    // A trial nobody asked for: a journal being replayed, or one from outside.
    // Draw what the interrupted session drew before it went on.
    if (outstanding_.empty()) undelivered_ = NextRound(options_.batch);
    Inform(trial);
  }
}

bool StrategyBase::Suggest(const Levels& levels) {
  if (!domain_.IsValid(levels) || !seen_.insert(levels).second) return false;
  outstanding_.push_back(levels);
  undelivered_.insert(undelivered_.begin(), levels);
  return true;
}

void StrategyBase::Inform(const Trial& trial) {
  if (told_.contains(trial.levels)) return;
  Remove(trial.levels, outstanding_);
  Remove(trial.levels, undelivered_);
  seen_.insert(trial.levels);
  Record(trial);
}

std::vector<Levels> StrategyBase::NextRound(int count) {
  std::vector<Levels> round;
  for (Levels& levels : Propose(count)) {
    if (static_cast<int>(round.size()) == count) break;
    if (!seen_.insert(levels).second) continue;
    outstanding_.push_back(levels);
    round.push_back(std::move(levels));
  }
  if (round.empty()) {
    const Levels levels = RandomUnseen();
    if (levels.empty()) {
      stop_reason_ = options_.top_k > 0 ? "top_k of the prior measured"
                                        : "space exhausted";
      return {};
    }
    seen_.insert(levels);
    outstanding_.push_back(levels);
    round.push_back(levels);
  }
  return round;
}

void StrategyBase::Record(const Trial& trial) {
  const int index = static_cast<int>(history_.size());
  history_.push_back(Observe(trial));
  told_.emplace(trial.levels, index);
  const Observation& observation = history_.back();
  if (observation.outcome == proto::OK && observation.cost < kInfinity &&
      (best_ < 0 || observation.cost < history_[best_].cost)) {
    best_ = index;
  }
  Learn(observation);
}

Observation StrategyBase::Observe(const Trial& trial) const {
  Observation observation;
  observation.levels = trial.levels;
  observation.deviation = trial.deviation;
  observation.predicted = trial.predicted;
  observation.outcome = trial.outcome;
  observation.cost = kInfinity;
  if (trial.outcome != proto::OK && trial.outcome != proto::CENSORED) {
    return observation;
  }
  const int objectives = std::max(options_.objectives, 1);
  const auto& values = trial.objectives;
  if (static_cast<int>(values.size()) < objectives ||
      !std::all_of(values.begin(), values.end(),
                   [](double v) { return std::isfinite(v); })) {
    // A censored trial without a bound tells nothing; an OK one without a
    // number has failed.
    observation.outcome = trial.outcome == proto::CENSORED
                              ? proto::CONTENDED
                              : proto::WRONG_RESULT;
    return observation;
  }
  observation.objectives = values;
  observation.censored = trial.outcome == proto::CENSORED;
  for (const ObjectiveLimit& limit : options_.limits) {
    if (values[limit.objective] > limit.at_most) return observation;
  }
  if (objectives == 1) {
    observation.cost = values[0];
    return observation;
  }
  // A product of powers: scale-free, so that milliseconds and megabytes mix.
  double log_cost = 0;
  for (int i = 0; i < objectives; ++i) {
    const double weight =
        options_.weights.empty() ? 1.0 / objectives : options_.weights[i];
    log_cost += weight * std::log(std::max(values[i],
                                           std::numeric_limits<double>::min()));
  }
  observation.cost = std::exp(log_cost);
  return observation;
}

double StrategyBase::CostOf(absl::Span<const uint16_t> levels) const {
  const auto it = told_.find(Levels(levels.begin(), levels.end()));
  return it == told_.end() ? std::numeric_limits<double>::quiet_NaN()
                           : history_[it->second].cost;
}

Levels StrategyBase::RandomUnseen() {
  const absl::optional<int64_t> size = domain_.size();
  const int draws = size ? kMaxDraws : kMaxDrawsUnlisted;
  for (int i = 0; i < draws; ++i) {
    Levels levels = domain_.Sample(rng_);
    if (!seen_.contains(levels)) return levels;
  }
  if (!size) return {};
  std::vector<int64_t> unseen;
  for (int64_t i = 0; i < *size; ++i) {
    if (!seen_.contains(domain_.At(i))) unseen.push_back(i);
  }
  if (unseen.empty()) return {};
  return domain_.At(unseen[rng_.UniformInt(unseen.size())]);
}

std::vector<Levels> StrategyBase::Finalists(int count) const {
  std::vector<const Observation*> ok;
  for (const Observation& o : history_) {
    if (o.outcome == proto::OK && o.cost < kInfinity) ok.push_back(&o);
  }
  std::stable_sort(ok.begin(), ok.end(),
                   [](const Observation* a, const Observation* b) {
                     return a->cost < b->cost;
                   });
  std::vector<Levels> result;
  for (const Observation* o : ok) {
    if (static_cast<int>(result.size()) >= count) break;
    result.push_back(o->levels);
  }
  return result;
}

std::vector<Trial> StrategyBase::ParetoFront() const {
  const int objectives = std::max(options_.objectives, 1);
  std::vector<const Observation*> ok;
  std::vector<std::vector<double>> costs;
  for (const Observation& o : history_) {
    if (o.outcome != proto::OK || o.cost == kInfinity) continue;
    ok.push_back(&o);
    costs.emplace_back(o.objectives.begin(), o.objectives.begin() + objectives);
  }
  std::vector<Trial> front;
  for (const int i : optrail::ParetoFront(costs)) {
    front.push_back({ok[i]->levels, ok[i]->outcome, ok[i]->objectives});
  }
  return front;
}

}  // namespace optrail::tuning
