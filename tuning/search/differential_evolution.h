#ifndef OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_
#define OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_

// Differential evolution (Storn and Price, 1997), current-to-best/1/bin with
// dithered scale, on level numbers; categorical knobs copy a parent's level
// instead of adding differences. Trials that were tried before move to an
// untried config beside them.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class DifferentialEvolution final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  Levels Mutant(size_t target);

  std::vector<Levels> population_;
  std::vector<Levels> last_step_;  // one per member
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_
