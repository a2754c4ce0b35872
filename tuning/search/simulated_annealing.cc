// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) on the logarithm
// of the cost, so that a temperature means a ratio. It starts from the best of
// a spread sample, moves to neighbours not tried before and cools geometrically
// over options.budget; when it has wandered without success it goes back to the
// best. A round of several trials draws several neighbours of the same config.

#include <algorithm>
#include <cmath>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kStart = 10;
constexpr int kDefaultBudget = 200;
// As differences of log cost: at first a config 30% slower is often accepted,
// in the end one 0.5% slower.
constexpr double kHot = 0.3;
constexpr double kCold = 0.005;
// Trials without a new best after which it returns to the best.
constexpr int kPatience = 40;

class SimulatedAnnealing final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override {
    if (history().size() < kStart || best() < 0) {
      return last_step_ = StartDesign(kStart);
    }
    const Levels best_levels = history()[best()].levels;
    if (at_.empty()) at_ = best_levels;
    for (const Levels& levels : last_step_) {
      const double from = CostOf(at_), to = CostOf(levels);
      ++since_success_;
      if (!(to < std::numeric_limits<double>::infinity())) continue;
      if (levels == best_levels) since_success_ = 0;
      if (to <= from ||
          rng().UniformReal() < std::exp(std::log(from / to) / Temperature())) {
        at_ = levels;
      }
    }
    if (since_success_ > kPatience) {
      at_ = best_levels;
      since_success_ = 0;
    }
    last_step_.clear();
    for (int i = 0; i < count; ++i) {
      Levels next = UnseenNear(at_);
      if (next.empty()) break;
      last_step_.push_back(std::move(next));
    }
    if (last_step_.empty()) {
      last_step_.push_back(at_);
      at_ = RandomUnseen();
      if (at_.empty()) return last_step_;
      last_step_ = {at_};
    }
    return last_step_;
  }

  double Temperature() const {
    const int budget = options().budget > 0 ? options().budget : kDefaultBudget;
    const double done =
        std::min(1.0, static_cast<double>(history().size()) / budget);
    return kHot * std::pow(kCold / kHot, done);
  }

  std::vector<Levels> last_step_;
  Levels at_;
  int since_success_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kSimulatedAnnealing = {"simulated_annealing",
                                                      Make<SimulatedAnnealing>};

}  // namespace optrail::tuning
