#ifndef OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_
#define OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_

// Differential evolution (Storn and Price, 1997), current-to-best/1/bin with
// dithered scale, on level numbers; categorical knobs copy a parent's level
// instead of adding differences. The better half of a spread sample is the
// first population. Members take turns, and each sees at once what those before
// it found. Trials that were tried before move to an untried config beside
// them.

#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class DifferentialEvolution final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  // A member's place and the config that would take it.
  struct Challenge {
    size_t member;
    Levels levels;
  };

  std::vector<Levels> Step(int count) override;
  Levels Mutant(size_t target);

  std::vector<Levels> start_;
  std::vector<Levels> population_;
  std::vector<Challenge> last_step_;
  size_t turn_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_DIFFERENTIAL_EVOLUTION_H_
