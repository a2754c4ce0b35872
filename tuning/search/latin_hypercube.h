#ifndef OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_
#define OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_

// Latin hypercube sampling (McKay, Beckman and Conover, 1979): every level of
// every knob appears about equally often. In a constrained space each point of
// the design moves to a valid config near it. After options.budget points (or
// 64) a new design begins.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class LatinHypercube final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_
