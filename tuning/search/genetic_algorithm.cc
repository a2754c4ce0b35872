#include "tuning/search/genetic_algorithm.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace

const Levels& GeneticAlgorithm::Tournament() {
  int64_t winner = static_cast<int64_t>(population_.size()) - 1;
  for (int i = 0; i < kTournament; ++i) {
    winner = std::min(winner, rng().UniformInt(population_.size()));
  }
  return population_[winner];
}

Levels GeneticAlgorithm::Crossover() {
  const Levels& mother = Tournament();
  const Levels& father = Tournament();
  std::vector<double> genes(mother.size());
  for (size_t k = 0; k < mother.size(); ++k) {
    genes[k] = rng()() & 1 ? mother[k] : father[k];
  }
  return MoveTowards(mother, genes);
}

Levels GeneticAlgorithm::Child() {
  Levels child = Crossover();
  for (int i = 1; i < kPairs && Seen(child); ++i) child = Crossover();
  if (!Seen(child) && rng().UniformReal() >= kMutation) return child;
  return UnseenNear(child);
}

std::vector<Levels> GeneticAlgorithm::Step(int count) {
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

}  // namespace optrail::tuning
