// Greedy iterated local search (Lourenco, Martin and Stutzle, 2003): move to
// the first better neighbour until there is none, then jump away from the best
// and climb again, farther each time in vain. Adjacent levels come first, then
// any other level of one knob.

#include <algorithm>
#include <utility>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kStart = 10;
// Random moves of a jump at first. One more after each that led to nothing
// better, until it leads anywhere.
constexpr int kLeastJump = 3;

class GreedyIls final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override {
    if (history().size() < kStart || best() < 0) {
      return last_step_ = StartDesign(kStart);
    }
    if (at_.empty()) at_ = history()[best()].levels;
    for (const Levels& levels : last_step_) {
      if (CostOf(levels) < CostOf(at_)) at_ = levels;
    }
    last_step_.clear();
    for (const Neighbourhood kind :
         {Neighbourhood::kAdjacent, Neighbourhood::kHamming}) {
      std::vector<Levels> neighbours = domain().Neighbours(at_, kind);
      rng().Shuffle(neighbours);
      for (Levels& neighbour : neighbours) {
        if (static_cast<int>(last_step_.size()) == count) break;
        if (Seen(neighbour)) continue;
        if (std::find(last_step_.begin(), last_step_.end(), neighbour) !=
            last_step_.end()) {
          continue;
        }
        last_step_.push_back(std::move(neighbour));
      }
      if (!last_step_.empty()) return last_step_;
    }
    // A local optimum. The jump's landing counts even if it is worse.
    const int most = kLeastJump + static_cast<int>(domain().knobs().size());
    jump_ = best() == jumped_from_ ? std::min(jump_ + 1, most) : kLeastJump;
    jumped_from_ = best();
    at_ = Perturb(history()[best()].levels);
    return last_step_ = {at_};
  }

  Levels Perturb(Levels levels) {
    for (int move = 0; move < jump_; ++move) {
      std::vector<Levels> neighbours =
          domain().Neighbours(levels, Neighbourhood::kHamming);
      if (neighbours.empty()) break;
      levels = neighbours[rng().UniformInt(neighbours.size())];
    }
    return levels;
  }

  std::vector<Levels> last_step_;
  Levels at_;
  int jump_ = 0;          // moves of the last jump
  int jumped_from_ = -1;  // index in history
};

}  // namespace

extern constexpr StrategyEntry kGreedyIls = {"greedy_ils", Make<GreedyIls>};

}  // namespace optrail::tuning
