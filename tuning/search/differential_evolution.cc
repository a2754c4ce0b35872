#include "tuning/search/differential_evolution.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kStart = 20;
constexpr int kPopulation = 10;
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
  if (start_.empty()) return start_ = StartDesign(kStart);
  if (population_.empty()) population_ = Cheapest(kPopulation, start_);
  for (Challenge& challenge : last_step_) {
    Levels& member = population_[challenge.member];
    if (CostOf(challenge.levels) < CostOf(member) ||
        std::isnan(CostOf(member))) {
      member = std::move(challenge.levels);
    }
  }
  last_step_.clear();
  std::vector<Levels> step;
  const int turns = std::min<int>(count, population_.size());
  for (int i = 0; i < turns; ++i) {
    const size_t member = turn_++ % population_.size();
    Levels trial = Mutant(member);
    if (Seen(trial) ||
        std::find(step.begin(), step.end(), trial) != step.end()) {
      Levels near = UnseenNear(trial);
      if (!near.empty()) trial = std::move(near);
    }
    last_step_.push_back({member, trial});
    step.push_back(std::move(trial));
  }
  return step;
}

}  // namespace optrail::tuning
