#include "tuning/search/genetic_algorithm.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kPopulation = 16;
constexpr int kChildren = 8;
constexpr int kTournament = 3;
constexpr double kMutation = 0.4;
// Generations without a new best after which the population is renewed, all but
// the elite.
constexpr int kPatience = 5;
constexpr int kElite = 3;

}  // namespace

const Levels& GeneticAlgorithm::Tournament() {
  int64_t winner = static_cast<int64_t>(population_.size()) - 1;
  for (int i = 0; i < kTournament; ++i) {
    winner = std::min(winner, rng().UniformInt(population_.size()));
  }
  return population_[winner];
}

Levels GeneticAlgorithm::Child() {
  const Levels& mother = Tournament();
  const Levels& father = Tournament();
  std::vector<double> genes(mother.size());
  for (size_t k = 0; k < mother.size(); ++k) {
    genes[k] = rng()() & 1 ? mother[k] : father[k];
  }
  Levels child = MoveTowards(mother, genes);
  if (!Seen(child) && rng().UniformReal() >= kMutation) return child;
  return UnseenNear(child, Neighbourhood::kHamming);
}

std::vector<Levels> GeneticAlgorithm::Step(int count) {
  // The warm start belongs to the first generation.
  if (population_.empty()) {
    for (const Observation& o : history()) population_.push_back(o.levels);
    if (population_.empty() && last_step_.empty()) {
      return last_step_ = SpreadSample(kPopulation);
    }
  }
  population_.insert(population_.end(), last_step_.begin(), last_step_.end());
  const auto fitter = [this](const Levels& a, const Levels& b) {
    return CostOf(a) < CostOf(b);
  };
  // The base may have answered a step with a random config instead.
  population_.erase(
      std::remove_if(population_.begin(), population_.end(),
                     [this](const Levels& levels) {
                       return !(CostOf(levels) <=
                                std::numeric_limits<double>::infinity());
                     }),
      population_.end());
  std::stable_sort(population_.begin(), population_.end(), fitter);
  if (population_.size() > kPopulation) population_.resize(kPopulation);
  last_step_.clear();
  if (population_.empty()) return last_step_ = SpreadSample(kPopulation);
  idle_generations_ = best() == known_best_ ? idle_generations_ + 1 : 0;
  known_best_ = best();
  if (idle_generations_ > kPatience && population_.size() > kElite) {
    idle_generations_ = 0;
    population_.resize(kElite);
    return last_step_ = SpreadSample(kPopulation - kElite);
  }
  for (int i = 0; i < std::max(count, kChildren); ++i) {
    Levels child = Child();
    if (child.empty()) child = RandomUnseen();
    if (child.empty()) break;
    if (std::find(last_step_.begin(), last_step_.end(), child) ==
        last_step_.end()) {
      last_step_.push_back(std::move(child));
    }
  }
  return last_step_;
}

}  // namespace optrail::tuning
