#ifndef OPTRAIL_TUNING_SEARCH_GREEDY_ILS_H_
#define OPTRAIL_TUNING_SEARCH_GREEDY_ILS_H_

// Greedy iterated local search (Lourenco, Martin and Stutzle, 2003): move to
// the first better neighbour until there is none, then jump away from the best
// and climb again, farther each time in vain. Adjacent levels come first, then
// any other level of one knob.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class GreedyIls final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  Levels Perturb(Levels levels);

  std::vector<Levels> last_step_;
  Levels at_;
  int jump_ = 0;          // moves of the last jump
  int jumped_from_ = -1;  // index in history
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_GREEDY_ILS_H_
