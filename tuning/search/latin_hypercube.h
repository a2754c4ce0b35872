#ifndef OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_
#define OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_

// Latin hypercube sampling (McKay, Beckman and Conover, 1979): every stratum of
// every knob appears about equally often. In a constrained space the strata of
// a knob hold equal shares of the valid configs, not of its levels: a level
// that few configs have would otherwise stand for as much as one that most
// have. After options.budget points (or 64) a new design begins.

#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class LatinHypercube final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  // Per knob and level the stratum it lies in.
  std::vector<std::vector<int>> Strata(int points);
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_LATIN_HYPERCUBE_H_
