#ifndef OPTRAIL_TRACKER_DETECT_LEVEL_PATH_H_
#define OPTRAIL_TRACKER_DETECT_LEVEL_PATH_H_

// Optimal partitioning of a series into constant levels, under any loss.
//
//   LevelProblem problem;
//   problem.cells = {10, 11, 9, 10, 10, 30, 31, 29, 30, 30};
//   problem.num_levels = 64;
//   problem.loss = {9, 4, 1, 0, 1, 4, 9};   // loss[i]: point is i - 3 above
//   problem.penalty = 20;
//   SegmentLevels(problem);                 // {5}
//
// Values and levels live on a common grid of cells, so that the cost of a point
// under a level is a table lookup and the best level of every segment is found
// by dynamic programming over (time, level), as Viterbi's algorithm does:
//
//   F_t(g) = min(F_{t-1}(g) + loss(x_t - g),
//                M_{t-m} + penalty + sum of loss(x_i - g) over the last m)
//   M_t    = min over g of F_t(g)
//
// where m is the shortest segment allowed. That is exact for the discretised
// problem, takes O(points * levels) whatever the loss is and however few the
// changes are, and vectorises. Functional pruning (Maidstone et al. 2017;
// Fearnhead and Rigaill 2019 for truncated losses) keeps the same functions as
// lists of intervals; a grid needs no algebra on the loss, so the loss can be
// measured from the data. Costs are integers: the result is the same on every
// machine.
//
// It is not a detector: choosing grid, loss and penalty is detect.h's work.

#include <cstdint>
#include <vector>

namespace optrail::tracker {

struct LevelProblem {
  // Each point's cell; may lie outside [0, num_levels).
  std::vector<int32_t> cells;
  // Levels are the cells 0 .. num_levels - 1.
  int num_levels = 0;
  // Odd length 2 * reach + 1. loss[reach + d] is the cost of a point d cells
  // above its level; beyond reach it costs what it costs at the end of the
  // table on that side. Entries are not negative.
  std::vector<int32_t> loss;
  // Cost of one more segment. (penalty + min_segment * largest loss) has to
  // stay below 2^27.
  int32_t penalty = 0;
  // Shortest segment; at least 1.
  int min_segment = 1;
};

// The first point of every segment but the first, ascending. Empty if there
// are fewer than 2 * min_segment points. Of equally good segmentations the one
// whose last segment starts earliest is chosen, and so on backwards among the
// cheapest levels; the answer is the same on every machine.
std::vector<int> SegmentLevels(const LevelProblem& problem);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_LEVEL_PATH_H_
