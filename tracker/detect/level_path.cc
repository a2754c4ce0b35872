#include "tracker/detect/level_path.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "tracker/detect/widest_vectors.h"

namespace optrail::tracker {
namespace {

// Levels are handled in blocks, so that the cheapest level is found by a
// vectorised minimum per block and one short search.
constexpr int kBlock = 16;
constexpr int32_t kUnreachable = 1 << 30;  // never the least cost
// How often costs are shifted back towards zero, long before they overflow.
constexpr int kStepsPerShift = 256;

// The costs of one point under all levels, as a window into a table that is
// wide enough for every cell.
class LossRows {
 public:
  LossRows(const LevelProblem& problem, int num_levels) {
    const int reach = static_cast<int>(problem.loss.size() / 2);
    lowest_ = -reach;
    highest_ = num_levels - 1 + reach;
    // Entry i belongs to the difference (point - level) = highest_ - i.
    table_.resize(highest_ - lowest_ + num_levels);
    for (size_t i = 0; i < table_.size(); ++i) {
      const int difference =
          std::clamp(highest_ - static_cast<int>(i), -reach, reach);
      table_[i] = problem.loss[reach + difference];
    }
  }

  const int32_t* Row(int32_t cell) const {
    return table_.data() + (highest_ - std::clamp(cell, lowest_, highest_));
  }

 private:
  int32_t lowest_, highest_;
  std::vector<int32_t> table_;
};

struct Levels {
  std::vector<int32_t> cost;    // F: cheapest way to be at this level now
  std::vector<int32_t> recent;  // loss over the last min_segment points
  std::vector<int32_t> start;   // where the segment behind `cost` starts
};

// One block of the recursion.
__attribute__((always_inline)) inline int32_t AdvanceBlock(
    int32_t* __restrict cost, int32_t* __restrict recent,
    int32_t* __restrict start, const int32_t* __restrict in,
    const int32_t* __restrict out, int32_t fresh_cost, int32_t fresh_start) {
  int32_t best = kUnreachable;
  for (int g = 0; g < kBlock; ++g) {
    recent[g] += in[g] - out[g];
    const int32_t stay = cost[g] + in[g];
    const int32_t fresh = fresh_cost + recent[g];
    const bool begins = fresh < stay;
    cost[g] = begins ? fresh : stay;
    start[g] = begins ? fresh_start : start[g];
    best = std::min(best, cost[g]);
  }
  return best;
}

struct Best {
  int32_t cost;
  int32_t start;
};

OPTRAIL_WIDEST_VECTORS Best Advance(Levels& levels, const int32_t* in,
                                    const int32_t* out, int32_t fresh_cost,
                                    int32_t fresh_start) {
  int32_t best = kUnreachable;
  size_t block = 0;
  for (size_t b = 0; b < levels.cost.size(); b += kBlock) {
    const int32_t cost =
        AdvanceBlock(&levels.cost[b], &levels.recent[b], &levels.start[b],
                     in + b, out + b, fresh_cost, fresh_start);
    if (cost < best) {
      best = cost;
      block = b;
    }
  }
  size_t level = block;
  while (levels.cost[level] != best) ++level;
  return {best, levels.start[level]};
}

}  // namespace

std::vector<int> SegmentLevels(const LevelProblem& problem) {
  OPTRAIL_CHECK(problem.loss.size() % 2 == 1) << problem.loss.size();
  OPTRAIL_CHECK(problem.num_levels > 0 && problem.min_segment > 0)
      << problem.num_levels << " levels, segments of " << problem.min_segment;
  const int n = static_cast<int>(problem.cells.size());
  const int shortest = problem.min_segment;
  if (n < 2 * shortest) return {};

  // The levels that fill the last block are made too dear to be chosen.
  const int num_levels = (problem.num_levels + kBlock - 1) / kBlock * kBlock;
  const LossRows rows(problem, num_levels);
  const std::vector<int32_t> nothing(num_levels, 0);
  Levels levels{std::vector<int32_t>(num_levels, kUnreachable),
                std::vector<int32_t>(num_levels, 0),
                std::vector<int32_t>(num_levels, 0)};
  std::fill(levels.recent.begin() + problem.num_levels, levels.recent.end(),
            kUnreachable / 4);

  // Cheapest segmentation of the first t points, and its last segment's start.
  std::vector<int32_t> cheapest(n + 1, kUnreachable);
  std::vector<int32_t> last_start(n + 1, 0);
  for (int t = 0; t < n; ++t) {
    const int32_t* in = rows.Row(problem.cells[t]);
    const int32_t* out =
        t >= shortest ? rows.Row(problem.cells[t - shortest]) : nothing.data();
    const int first = t - shortest + 1;
    int32_t fresh_cost = kUnreachable / 2;
    if (first == 0) {
      fresh_cost = 0;
    } else if (first >= shortest) {
      fresh_cost = cheapest[first] + problem.penalty;
    }
    const Best best = Advance(levels, in, out, fresh_cost, first);
    if (first < 0) {
      // No segment is long enough yet; forget the sums begun from nowhere.
      std::fill(levels.cost.begin(), levels.cost.end(), kUnreachable / 2);
      continue;
    }
    cheapest[t + 1] = best.cost;
    last_start[t + 1] = best.start;
    if (t % kStepsPerShift == kStepsPerShift - 1) {
      for (int32_t& cost : levels.cost) cost -= best.cost;
      for (int s = std::max(shortest, first); s <= t + 1; ++s) {
        cheapest[s] -= best.cost;
      }
    }
  }

  std::vector<int> changes;
  for (int t = last_start[n]; t > 0; t = last_start[t]) changes.push_back(t);
  std::reverse(changes.begin(), changes.end());
  return changes;
}

}  // namespace optrail::tracker
