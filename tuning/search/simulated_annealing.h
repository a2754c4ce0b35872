#ifndef OPTRAIL_TUNING_SEARCH_SIMULATED_ANNEALING_H_
#define OPTRAIL_TUNING_SEARCH_SIMULATED_ANNEALING_H_

// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) on the logarithm
// of the cost, so that a temperature means a ratio. It starts from the best of
// a spread sample, moves to neighbours not tried before and cools geometrically
// over options.budget; when it has wandered without success it goes back to the
// best. A round of several trials draws several neighbours of the same config.

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

class SimulatedAnnealing final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override;
  double Temperature() const;

  std::vector<Levels> last_step_;
  Levels at_;
  int since_success_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_SIMULATED_ANNEALING_H_
