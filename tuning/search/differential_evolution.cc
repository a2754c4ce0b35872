// Differential evolution (Storn and Price, 1997), current-to-best/1/bin with
// dithered scale, on level numbers; categorical knobs copy a parent's level
// instead of adding differences. The better half of a spread sample is the
// first population. Members take turns, and each sees at once what those before
// it found. Trials that were tried before move to an untried config beside
// them.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kStart = 20;
constexpr int kPopulation = 10;
constexpr double kCrossover = 0.7;

class DifferentialEvolution final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  // A member's place and the config that would take it.
  struct Challenge {
    size_t member;
    Levels levels;
  };

  std::vector<Levels> Step(int count) override {
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

  Levels Mutant(size_t target) {
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

  std::vector<Levels> start_;
  std::vector<Levels> population_;
  std::vector<Challenge> last_step_;
  size_t turn_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kDifferentialEvolution = {
    "differential_evolution", Make<DifferentialEvolution>};

}  // namespace optrail::tuning
