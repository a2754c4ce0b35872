#ifndef OPTRAIL_TUNING_SEARCH_THREE_PHASE_H_
#define OPTRAIL_TUNING_SEARCH_THREE_PHASE_H_

// Explore, exploit, refine: a spread sample of the space, then recombinations
// of the best configs found, then every neighbour of the very best until none
// is better. The first two take fixed shares of options.budget; when refinement
// has reached a local optimum the three begin again, smaller.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class ThreePhase final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  enum class Phase { kExplore, kExploit, kRefine };

  std::vector<Levels> Step(int count) override;
  std::vector<Levels> Exploit(int count);
  std::vector<Levels> Refine(int count);

  Phase phase_ = Phase::kExplore;
  bool explored_ = false;
  int phase_began_ = 0;  // history size
  int cycle_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_THREE_PHASE_H_
