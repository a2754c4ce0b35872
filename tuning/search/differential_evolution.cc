#include "tuning/search/differential_evolution.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kPopulation = 12;
constexpr double kCrossover = 0.7;

}  // namespace

Levels DifferentialEvolution::Mutant(size_t target) {
  const Levels& base = population_[target];
  const Levels& leader = best() >= 0 ? history()[best()].levels : base;
  const Levels& a = population_[rng().UniformInt(population_.size())];
  const Levels& b = population_[rng().UniformInt(population_.size())];
  const double scale = 0.4 + 0.6 * rng().UniformReal();
  std::vector<double> trial(base.begin(), base.end());
  const size_t always = rng().UniformInt(base.size());
  for (size_t k = 0; k < base.size(); ++k) {
    if (k != always && rng().UniformReal() >= kCrossover) continue;
    if (domain().knobs()[k].ordinal) {
      trial[k] += scale * (static_cast<double>(leader[k]) - base[k]) +
                  scale * (static_cast<double>(a[k]) - b[k]);
    } else {
      trial[k] = rng()() & 1 ? leader[k] : a[k];
    }
  }
  return MoveTowards(base, trial);
}

std::vector<Levels> DifferentialEvolution::Step(int count) {
  if (population_.empty()) {
    return last_step_ = population_ = SpreadSample(kPopulation);
  }
  for (size_t i = 0; i < population_.size(); ++i) {
    const double now = CostOf(last_step_[i]), before = CostOf(population_[i]);
    if (now < before || std::isnan(before)) population_[i] = last_step_[i];
  }
  last_step_.clear();
  for (size_t i = 0; i < population_.size(); ++i) {
    Levels trial = Mutant(i);
    if (Seen(trial) || std::find(last_step_.begin(), last_step_.end(), trial) !=
                           last_step_.end()) {
      Levels near = UnseenNear(trial, Neighbourhood::kHamming);
      if (!near.empty()) trial = std::move(near);
    }
    last_step_.push_back(std::move(trial));
  }
  return last_step_;
}

}  // namespace optrail::tuning
