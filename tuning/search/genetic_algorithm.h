#ifndef OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_
#define OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_

// Genetic algorithm (Holland, 1975) in the steady state (Syswerda, 1989): a
// child joins the population as soon as its cost is known, and the worst
// leaves. Parents by tournament, uniform crossover repaired to a valid config,
// mutation to a neighbour. A child that was tried before gives way to one of
// other parents, in the end to the nearest config that was not tried, so that
// no trial is spent on what is known.

#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class GeneticAlgorithm final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  const Levels& Tournament();
  Levels Crossover();
  Levels Child();

  std::vector<Levels> population_;  // the fittest first
  std::vector<Levels> last_step_;
  int renewed_at_ = 0;  // history size
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_GENETIC_ALGORITHM_H_
