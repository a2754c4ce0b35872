#ifndef OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_
#define OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_

// Genetic algorithm (Holland, 1975) with elitism: parents by tournament,
// uniform crossover repaired to a valid config, mutation to a neighbour. A
// child that was tried before is moved to the nearest config that was not, so
// that no trial is spent on what is known.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class GeneticAlgorithm final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  const Levels& Tournament();
  Levels Child();

  std::vector<Levels> population_;  // the fittest first
  std::vector<Levels> last_step_;
  int known_best_ = -1;
  int idle_generations_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_
