#include "tracker/detect/level_path.h"

#include <algorithm>
#include <cstdlib>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Every segment at its best level, plus the penalty for each but the first.
int64_t SegmentationCost(const LevelProblem& problem,
                         const std::vector<int>& changes) {
  const int reach = static_cast<int>(problem.loss.size() / 2);
  std::vector<int> bounds = {0};
  bounds.insert(bounds.end(), changes.begin(), changes.end());
  bounds.push_back(static_cast<int>(problem.cells.size()));
  int64_t total = static_cast<int64_t>(changes.size()) * problem.penalty;
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    int64_t best = INT64_MAX;
    for (int level = 0; level < problem.num_levels; ++level) {
      int64_t cost = 0;
      for (int i = bounds[k]; i < bounds[k + 1]; ++i) {
        cost += problem.loss[reach + std::clamp(problem.cells[i] - level,
                                                -reach, reach)];
      }
      best = std::min(best, cost);
    }
    total += best;
  }
  return total;
}

// The oracle: try every start of the last segment, every level for it.
int64_t LeastCostSlowly(const LevelProblem& problem) {
  const int n = static_cast<int>(problem.cells.size());
  const int reach = static_cast<int>(problem.loss.size() / 2);
  const auto segment_cost = [&](int begin, int end) {
    int64_t best = INT64_MAX;
    for (int level = 0; level < problem.num_levels; ++level) {
      int64_t cost = 0;
      for (int i = begin; i < end; ++i) {
        const int d = std::clamp(problem.cells[i] - level, -reach, reach);
        cost += problem.loss[reach + d];
      }
      best = std::min(best, cost);
    }
    return best;
  };
  constexpr int64_t kNone = INT64_MAX / 2;
  std::vector<int64_t> best(n + 1, kNone);
  best[0] = -problem.penalty;
  for (int end = problem.min_segment; end <= n; ++end) {
    for (int begin = 0; begin + problem.min_segment <= end; ++begin) {
      if (best[begin] == kNone) continue;
      best[end] = std::min(
          best[end], best[begin] + problem.penalty + segment_cost(begin, end));
    }
  }
  return best[n];
}

std::vector<int32_t> Quadratic(int reach) {
  std::vector<int32_t> loss;
  for (int d = -reach; d <= reach; ++d) loss.push_back(d * d);
  return loss;
}

TEST(SegmentLevels, FindsTheExampleOfTheHeader) {
  LevelProblem problem;
  problem.cells = {10, 11, 9, 10, 10, 30, 31, 29, 30, 30};
  problem.num_levels = 64;
  problem.loss = {9, 4, 1, 0, 1, 4, 9};
  problem.penalty = 20;
  EXPECT_THAT(SegmentLevels(problem), ElementsAre(5));
}

TEST(SegmentLevels, IsOptimalByTheSlowOracle) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    LevelProblem problem;
    problem.num_levels = 1 + static_cast<int>(rng.UniformInt(80));
    problem.min_segment = 1 + static_cast<int>(rng.UniformInt(6));
    problem.penalty = static_cast<int32_t>(rng.UniformInt(200));
    if (round % 2 == 0) {
      problem.loss = Quadratic(1 + static_cast<int>(rng.UniformInt(8)));
    } else {
      // Any loss at all.
      problem.loss.resize(2 * rng.UniformInt(6) + 1);
      for (int32_t& l : problem.loss) {
        l = static_cast<int32_t>(rng.UniformInt(40));
      }
    }
    const int n = static_cast<int>(rng.UniformInt(45));
    int level = 0;
    for (int i = 0; i < n; ++i) {
      if (rng.UniformInt(8) == 0) {
        level = static_cast<int>(rng.UniformInt(problem.num_levels + 20)) - 10;
      }
      problem.cells.push_back(level + static_cast<int>(rng.UniformInt(7)) - 3);
    }
    const std::vector<int> changes = SegmentLevels(problem);
    if (n < 2 * problem.min_segment) {
      EXPECT_THAT(changes, IsEmpty());
      continue;
    }
    EXPECT_EQ(SegmentationCost(problem, changes), LeastCostSlowly(problem))
        << "round " << round;
    int begin = 0;
    for (const int change : changes) {
      EXPECT_GE(change - begin, problem.min_segment);
      begin = change;
    }
    EXPECT_GE(n - begin, problem.min_segment);
  }
}

TEST(SegmentLevels, StaysExactOverManyPoints) {
  // Costs are shifted back now and then; a change far from the start must be
  // found as if it were near.
  LevelProblem problem;
  problem.num_levels = 100;
  problem.loss = Quadratic(6);
  problem.penalty = 100;
  problem.min_segment = 5;
  Rng rng(2);
  std::vector<int> expected;
  for (int t = 0; t < 200000; ++t) {
    if (t > 0 && t % 997 == 0) expected.push_back(t);
    const int level = t / 997 % 2 == 0 ? 20 : 60;
    problem.cells.push_back(level + static_cast<int>(rng.UniformInt(5)) - 2);
  }
  EXPECT_EQ(SegmentLevels(problem), expected);
}

TEST(SegmentLevels, IgnoresAsFewOutliersAsTheCapAllows) {
  LevelProblem problem;
  problem.num_levels = 200;
  problem.loss = Quadratic(3);  // at most 9 a point
  problem.penalty = 27;         // two changes cost what 6 points cost
  problem.cells.assign(60, 20);
  for (int i = 30; i < 35; ++i) problem.cells[i] = 150;
  EXPECT_THAT(SegmentLevels(problem), IsEmpty());
  for (int i = 35; i < 37; ++i) problem.cells[i] = 150;
  EXPECT_THAT(SegmentLevels(problem), ElementsAre(30, 37));
}

}  // namespace
}  // namespace optrail::tracker
