#include "tuning/search/step_strategy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace optrail::tuning {
namespace {

// Steps in a row that name nothing new before the base tries a random config.
constexpr int kMaxIdleSteps = 50;
constexpr int kMaxMoves = 8;
// Samples among which the one nearest to a design point is taken. With many the
// design would overrule the constraints: the few valid configs of a sparse
// region would stand for all of it.
constexpr int kDesignSamples = 8;

}  // namespace

std::vector<Levels> StepStrategy::Propose(int count) {
  std::vector<Levels> round;
  for (int idle = 0; idle < kMaxIdleSteps;) {
    while (!queue_.empty() && static_cast<int>(round.size()) < count) {
      if (!Seen(queue_.front())) round.push_back(queue_.front());
      queue_.pop_front();
    }
    // Answers of this step are still to come, from this round or an earlier
    // one.
    if (!round.empty() || !outstanding().empty()) return round;
    const std::vector<Levels> step = Step(count);
    queue_.assign(step.begin(), step.end());
    ++idle;
  }
  return round;
}

std::vector<Levels> StepStrategy::SpreadSample(int count) {
  // A Latin hypercube over the levels; each point moves to the nearest of some
  // valid samples, because a constrained space has holes.
  const auto knobs = domain().knobs();
  std::vector<std::vector<double>> design(count,
                                          std::vector<double>(knobs.size()));
  for (size_t k = 0; k < knobs.size(); ++k) {
    std::vector<int> strata(count);
    std::iota(strata.begin(), strata.end(), 0);
    rng().Shuffle(strata);
    for (int i = 0; i < count; ++i) {
      design[i][k] = (strata[i] + rng().UniformReal()) / count;
    }
  }
  std::vector<Levels> result;
  for (const std::vector<double>& point : design) {
    Levels nearest;
    double least = std::numeric_limits<double>::infinity();
    for (int s = 0; s < kDesignSamples; ++s) {
      Levels levels = domain().Sample(rng());
      double distance = 0;
      for (size_t k = 0; k < knobs.size(); ++k) {
        const double x = (levels[k] + 0.5) / knobs[k].size();
        distance += (x - point[k]) * (x - point[k]);
      }
      if (distance < least &&
          std::find(result.begin(), result.end(), levels) == result.end()) {
        least = distance;
        nearest = std::move(levels);
      }
    }
    if (!nearest.empty()) result.push_back(std::move(nearest));
  }
  return result;
}

Levels StepStrategy::MoveTowards(const Levels& from,
                                 const std::vector<double>& target) {
  const auto knobs = domain().knobs();
  std::vector<size_t> order(knobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  rng().Shuffle(order);
  Levels levels = from;
  // Twice: a move that was invalid may become valid after another knob's.
  for (int pass = 0; pass < 2; ++pass) {
    for (const size_t k : order) {
      const int last = knobs[k].size() - 1;
      const int goal = static_cast<int>(
          std::lround(std::min<double>(last, std::max(0.0, target[k]))));
      const uint16_t own = levels[k];
      const int direction = goal > own ? -1 : 1;
      for (int level = goal; level != own; level += direction) {
        levels[k] = static_cast<uint16_t>(level);
        if (domain().IsValid(levels)) break;
        levels[k] = own;
        if (!knobs[k].ordinal) break;
      }
    }
  }
  return levels;
}

Levels StepStrategy::UnseenNear(const Levels& levels, Neighbourhood kind) {
  Levels at = levels;
  for (int move = 0; move < kMaxMoves; ++move) {
    std::vector<Levels> neighbours = domain().Neighbours(at, kind);
    if (neighbours.empty()) return {};
    rng().Shuffle(neighbours);
    for (Levels& neighbour : neighbours) {
      if (!Seen(neighbour)) return std::move(neighbour);
    }
    at = neighbours.front();
  }
  return {};
}

}  // namespace optrail::tuning
