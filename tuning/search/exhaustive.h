#ifndef OPTRAIL_TUNING_SEARCH_EXHAUSTIVE_H_
#define OPTRAIL_TUNING_SEARCH_EXHAUSTIVE_H_

// Every config, in the domain's order. Only for domains that are enumerated.

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {

class Exhaustive final : public StrategyBase {
 public:
  using StrategyBase::StrategyBase;

 private:
  std::vector<Levels> Propose(int count) override;

  int64_t next_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_EXHAUSTIVE_H_
