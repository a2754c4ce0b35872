// Uniform over the valid configs, without repetition: the baseline, and hard to
// beat in a space where most configs are good (Bergstra and Bengio, "Random
// search for hyper-parameter optimization", 2012).

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {
namespace {

class RandomSearch final : public StrategyBase {
 public:
  using StrategyBase::StrategyBase;

 private:
  std::vector<Levels> Propose(int count) override {
    std::vector<Levels> round;
    for (int i = 0; i < count; ++i) {
      Levels levels = RandomUnseen();
      if (levels.empty()) break;
      round.push_back(
          std::move(levels));  // a repeat within the round is dropped
    }
    return round;
  }
};

}  // namespace

extern constexpr StrategyEntry kRandomSearch = {"random", Make<RandomSearch>};

}  // namespace optrail::tuning
