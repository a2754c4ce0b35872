#include "graph/memory/exact.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace optrail::graph {
namespace {

constexpr absl::Duration kPlenty = absl::Seconds(60);

MemoryProblem ProblemOf(const std::vector<LifetimeBlock>& lifetimes) {
  std::vector<int> order;
  return MakeProblem(lifetimes, &order);
}

ExactResult Solve(const std::vector<LifetimeBlock>& lifetimes,
                  int64_t capacity) {
  const ProcessorDeadline deadline(kPlenty);
  return SearchExactly(ProblemOf(lifetimes), capacity, deadline, 1);
}

bool Overlap(const LifetimeBlock& a, int64_t offset_a, const LifetimeBlock& b,
             int64_t offset_b) {
  return a.lower < b.upper && b.lower < a.upper &&
         offset_a < offset_b + b.size && offset_b < offset_a + a.size;
}

// Tries every offset of every block, one after another.
bool Fits(const std::vector<LifetimeBlock>& blocks, int64_t capacity,
          std::vector<int64_t>& offsets) {
  const size_t next = offsets.size();
  if (next == blocks.size()) return true;
  for (int64_t offset = 0; offset + blocks[next].size <= capacity; ++offset) {
    if (blocks[next].fixed != kNotPlaced && blocks[next].fixed != offset) {
      continue;
    }
    bool free = true;
    for (size_t i = 0; i < next && free; ++i) {
      free = !Overlap(blocks[i], offsets[i], blocks[next], offset);
    }
    if (!free) continue;
    offsets.push_back(offset);
    if (Fits(blocks, capacity, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

TEST(ExactTest, SolvesTheExampleOfMiniMallocAndProvesItsCapacityMinimal) {
  const std::vector<LifetimeBlock> blocks = {
      {0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}};
  EXPECT_EQ(Solve(blocks, 12).outcome, ExactOutcome::kFound);
  EXPECT_EQ(Solve(blocks, 11).outcome, ExactOutcome::kInfeasible);
}

TEST(ExactTest, ProvesThatTheLoadIsNotAlwaysEnough) {
  // At most 6 bytes are live at once, and yet 6 are too few.
  const std::vector<LifetimeBlock> blocks = {{4, 8, 2}, {0, 3, 3}, {3, 6, 1},
                                             {3, 5, 1}, {1, 5, 2}, {0, 1, 3},
                                             {5, 7, 3}, {1, 4, 1}};
  EXPECT_EQ(ProblemOf(blocks).lower_bound, 6);
  std::vector<int64_t> offsets;
  EXPECT_FALSE(Fits(blocks, 6, offsets));
  EXPECT_EQ(Solve(blocks, 6).outcome, ExactOutcome::kInfeasible);
  EXPECT_EQ(Solve(blocks, 7).outcome, ExactOutcome::kFound);
}

TEST(ExactTest, AgreesWithExhaustiveSearchAtTheLoad) {
  Rng rng(7);
  for (int round = 0; round < 1000; ++round) {
    std::vector<LifetimeBlock> blocks;
    for (int i = 0; i < 8; ++i) {
      const int64_t lower = rng.UniformInt(6);
      blocks.push_back(
          {lower, lower + 1 + rng.UniformInt(4), 1 + rng.UniformInt(3)});
    }
    const int64_t bound = ProblemOf(blocks).lower_bound;
    std::vector<int64_t> offsets;
    ASSERT_EQ(Solve(blocks, bound).outcome == ExactOutcome::kFound,
              Fits(blocks, bound, offsets))
        << "round " << round;
  }
}

TEST(ExactTest, AgreesWithExhaustiveSearchWhereBlocksAreFixed) {
  Rng rng(11);
  int infeasible = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<LifetimeBlock> blocks;
    for (int i = 0; i < 6; ++i) {
      const int64_t lower = rng.UniformInt(6);
      blocks.push_back(
          {lower, lower + 1 + rng.UniformInt(4), 1 + rng.UniformInt(3)});
    }
    blocks[0].fixed = rng.UniformInt(4);
    if (round % 2 == 0 && (blocks[1].lower >= blocks[0].upper ||
                           blocks[1].upper <= blocks[0].lower)) {
      blocks[1].fixed = rng.UniformInt(4);
    }
    const int64_t capacity = ProblemOf(blocks).lower_bound + rng.UniformInt(2);
    std::vector<int64_t> offsets;
    const bool expected = Fits(blocks, capacity, offsets);
    infeasible += !expected;
    ASSERT_EQ(Solve(blocks, capacity).outcome,
              expected ? ExactOutcome::kFound : ExactOutcome::kInfeasible)
        << "round " << round;
  }
  EXPECT_GT(infeasible, 20);
}

TEST(ExactTest, StopsAtItsTimeLimit) {
  std::vector<LifetimeBlock> blocks;
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    const int64_t lower = rng.UniformInt(100);
    blocks.push_back({lower, lower + 1 + rng.UniformInt(60),
                      1000 + 2 * rng.UniformInt(100000)});
  }
  const ProcessorDeadline deadline(absl::ZeroDuration());
  const MemoryProblem problem = ProblemOf(blocks);
  EXPECT_EQ(SearchExactly(problem, problem.lower_bound, deadline, 1).outcome,
            ExactOutcome::kTimeLimit);
}

}  // namespace
}  // namespace optrail::graph
