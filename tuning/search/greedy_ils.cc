#include "tuning/search/greedy_ils.h"

#include <algorithm>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kStart = 10;
// Random moves of a jump at first. One more after each that led to nothing
// better, until it leads anywhere.
constexpr int kLeastJump = 3;

}  // namespace

Levels GreedyIls::Perturb(Levels levels) {
  for (int move = 0; move < jump_; ++move) {
    std::vector<Levels> neighbours =
        domain().Neighbours(levels, Neighbourhood::kHamming);
    if (neighbours.empty()) break;
    levels = neighbours[rng().UniformInt(neighbours.size())];
  }
  return levels;
}

std::vector<Levels> GreedyIls::Step(int count) {
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

}  // namespace optrail::tuning
