// Every config, in the domain's order. Only for domains that are enumerated.

#include "tuning/search/strategy_base.h"

namespace optrail::tuning {
namespace {

class Exhaustive final : public StrategyBase {
 public:
  using StrategyBase::StrategyBase;

 private:
  std::vector<Levels> Propose(int count) override {
    std::vector<Levels> round;
    while (static_cast<int>(round.size()) < count && next_ < *domain().size()) {
      Levels levels = domain().At(next_++);
      if (!Seen(levels)) round.push_back(std::move(levels));
    }
    return round;
  }

  int64_t next_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kExhaustive = {"exhaustive", Make<Exhaustive>};

}  // namespace optrail::tuning
