#ifndef OPTRAIL_TUNING_SEARCH_RANDOM_SEARCH_H_
#define OPTRAIL_TUNING_SEARCH_RANDOM_SEARCH_H_

// Uniform over the valid configs, without repetition: the baseline, and hard to
// beat in a space where most configs are good (Bergstra and Bengio, "Random
// search for hyper-parameter optimization", 2012).

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class RandomSearch final : public StrategyBase {
 public:
  using StrategyBase::StrategyBase;

 private:
  std::vector<Levels> Propose(int count) override;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_RANDOM_SEARCH_H_
