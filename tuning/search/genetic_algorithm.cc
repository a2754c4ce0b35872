// Genetic algorithm (Holland, 1975) in the steady state (Syswerda, 1989): a
// child joins the population as soon as its cost is known, and the worst
// leaves. Parents by tournament, uniform crossover repaired to a valid config,
// mutation to a neighbour. A child that was tried before gives way to one of
// other parents, in the end to the nearest config that was not tried, so that
// no trial is spent on what is known.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kPopulation = 16;
constexpr int kTournament = 2;
// Pairs of parents tried for a child that is new.
constexpr int kPairs = 5;
constexpr double kMutation = 0.2;
// Trials without a new best after which the population is renewed, all but the
// elite.
constexpr int kPatience = 64;
constexpr int kElite = 3;

class GeneticAlgorithm final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override {
    if (population_.empty() && last_step_.empty()) {
      return last_step_ = StartDesign(kPopulation);
    }
    for (const Levels& levels : last_step_) {
      // The base may have answered a step with a random config instead.
      if (!std::isnan(CostOf(levels))) population_.push_back(levels);
    }
    population_ = Cheapest(kPopulation, std::move(population_));
    if (population_.empty()) return last_step_ = StartDesign(kPopulation);
    const int trials = static_cast<int>(history().size());
    if (trials - std::max(best(), renewed_at_) > kPatience &&
        population_.size() > kElite) {
      renewed_at_ = trials;
      population_.resize(kElite);
      return last_step_ = SpreadSample(kPopulation - kElite);
    }
    last_step_.clear();
    for (int i = 0; i < count; ++i) {
      Levels child = Child();
      if (child.empty()) child = RandomUnseen();
      if (child.empty()) break;
      if (std::find(last_step_.begin(), last_step_.end(), child) ==
          last_step_.end()) {
        last_step_.push_back(std::move(child));
      }
    }
    if (last_step_.empty()) last_step_.push_back(population_.front());
    return last_step_;
  }

  const Levels& Tournament() {
    int64_t winner = static_cast<int64_t>(population_.size()) - 1;
    for (int i = 0; i < kTournament; ++i) {
      winner = std::min(winner, rng().UniformInt(population_.size()));
    }
    return population_[winner];
  }

  Levels Crossover() {
    const Levels& mother = Tournament();
    const Levels& father = Tournament();
    std::vector<double> genes(mother.size());
    for (size_t k = 0; k < mother.size(); ++k) {
      genes[k] = rng()() & 1 ? mother[k] : father[k];
    }
    return MoveTowards(mother, genes);
  }

  Levels Child() {
    Levels child = Crossover();
    for (int i = 1; i < kPairs && Seen(child); ++i) child = Crossover();
    if (!Seen(child) && rng().UniformReal() >= kMutation) return child;
    return UnseenNear(child);
  }

  std::vector<Levels> population_;  // the fittest first
  std::vector<Levels> last_step_;
  int renewed_at_ = 0;  // history size
};

}  // namespace

extern constexpr StrategyEntry kGeneticAlgorithm = {"genetic_algorithm",
                                                    Make<GeneticAlgorithm>};

}  // namespace optrail::tuning
