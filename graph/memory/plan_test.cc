#include "graph/memory/plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/random.h"
#include "graph/memory/check.h"
#include "graph/memory/evaluation/generated_buffers.h"

namespace optrail::graph {
namespace {

MemoryBuffer Named(const std::string& id, int64_t lower, int64_t upper,
                   int64_t size) {
  MemoryBuffer buffer;
  buffer.id = id;
  buffer.lower = lower;
  buffer.upper = upper;
  buffer.size_bytes = size;
  return buffer;
}

std::string ErrorOf(const std::vector<MemoryBuffer>& buffers,
                    const MemoryPlanOptions& options = {}) {
  return std::string(Plan(buffers, options).status().message());
}

TEST(PlanTest, PlansNothing) {
  const auto plan = Plan({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 0);
  EXPECT_EQ(plan->proof, PlanProof::kMinimal);
}

TEST(PlanTest, ReusesTheBytesOfBuffersThatEnded) {
  const auto plan = Plan({Named("a", 0, 2, 64), Named("b", 2, 4, 64)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 64);
  EXPECT_EQ(plan->proof, PlanProof::kMinimal);
}

TEST(PlanTest, FindsPlacementsThatFillTheWholeArena) {
  for (const int count : {40, 120, 200}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const auto buffers = TightBuffers(count, 0.05, seed);
      MemoryPlanOptions options;
      options.capacity_bytes = kTightCapacity;
      options.time_limit = absl::Minutes(5);
      const auto plan = Plan(buffers, options);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_LE(plan->arena_bytes, kTightCapacity)
          << count << " buffers, seed " << seed;
      EXPECT_TRUE(CheckPlan(buffers, plan->offsets, kTightCapacity, 512).ok());
    }
  }
}

TEST(PlanTest, StaysCloseToTheLoadOnTrainingSteps) {
  const auto buffers = TrainingBuffers(70, /*seed=*/1);
  MemoryPlanOptions options;
  options.time_limit = absl::Minutes(5);
  options.capacity_bytes = 0;
  for (const MemoryBuffer& buffer : buffers) {
    *options.capacity_bytes += buffer.size_bytes;
  }
  const auto loose = Plan(buffers, options);
  ASSERT_TRUE(loose.ok()) << loose.status();
  EXPECT_NE(loose->proof, PlanProof::kNone);
  options.capacity_bytes =
      loose->lower_bound_bytes + loose->lower_bound_bytes / 1000;
  const auto plan = Plan(buffers, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->arena_bytes, *options.capacity_bytes);
}

TEST(PlanTest, GivesTheSamePlanForTheSameSeed) {
  const auto buffers = TightBuffers(100, 0.1, /*seed=*/5);
  MemoryPlanOptions options;
  options.time_limit = absl::Minutes(5);
  options.capacity_bytes = kTightCapacity;
  EXPECT_EQ(Plan(buffers, options)->offsets, Plan(buffers, options)->offsets);
}

TEST(PlanTest, ReportsTheBestPlacementWhereTheCapacityIsImpossible) {
  MemoryPlanOptions options;
  options.capacity_bytes = 100;
  const auto plan = Plan({Named("a", 0, 2, 64), Named("b", 1, 4, 64)}, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->arena_bytes, 128);
  EXPECT_EQ(plan->lower_bound_bytes, 128);
}

TEST(PlanTest, ReturnsAPlacementHoweverLittleTimeThereIs) {
  const auto buffers = TightBuffers(300, 0.0, /*seed=*/2);
  MemoryPlanOptions options;
  options.time_limit = absl::ZeroDuration();
  const auto plan = Plan(buffers, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(CheckPlan(buffers, plan->offsets, plan->arena_bytes, 1).ok());
}

TEST(PlanTest, KeepsAlignmentFixedOffsetsAndGroups) {
  Rng rng(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<MemoryBuffer> buffers;
    for (int i = 0; i < 30; ++i) {
      const int64_t lower = rng.UniformInt(20);
      buffers.push_back(Named(std::to_string(i), lower,
                              lower + 1 + rng.UniformInt(8),
                              rng.UniformInt(1000)));
    }
    buffers[0].fixed_offset = 64 * rng.UniformInt(20);
    buffers[1].group = buffers[2].group = buffers[3].group = "view";
    MemoryPlanOptions options;
    options.alignment_bytes = 64;
    options.time_limit = absl::Milliseconds(100);
    const auto plan = Plan(buffers, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->offsets[0], *buffers[0].fixed_offset);
    EXPECT_EQ(plan->offsets[1], plan->offsets[2]);
    EXPECT_EQ(plan->offsets[1], plan->offsets[3]);
    EXPECT_TRUE(CheckPlan(buffers, plan->offsets, plan->arena_bytes, 64).ok());
    EXPECT_GE(plan->arena_bytes, plan->lower_bound_bytes);
  }
}

TEST(PlanTest, NamesTheBufferThatIsWrong) {
  EXPECT_EQ(ErrorOf({Named("a", 2, 2, 64)}),
            "buffer \"a\": lower 2, expected less than its upper 2");
  EXPECT_EQ(ErrorOf({Named("a", 0, 2, -1)}),
            "buffer \"a\": size -1, expected 0 to 1152921504606846976");
  EXPECT_EQ(ErrorOf({Named("a", 0, std::numeric_limits<int64_t>::max(), 1)}),
            "buffer \"a\": time 9223372036854775807, expected -2^60 to 2^60");
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(ErrorOf({Named("a", 0, 2, large), Named("b", 0, 2, large)}),
            "buffer \"b\": the sizes up to it add up to more than 2^60 bytes, "
            "expected less");
  MemoryBuffer fixed = Named("a", 0, 2, 8);
  fixed.fixed_offset = 3;
  MemoryPlanOptions options;
  options.alignment_bytes = 4;
  EXPECT_EQ(ErrorOf({fixed}, options),
            "buffer \"a\": fixed offset 3, expected a multiple of 4 from 0 to "
            "1152921504606846976");
  options.alignment_bytes = 3;
  EXPECT_EQ(ErrorOf({}, options),
            "alignment 3, expected a power of two from 1 to 2^30");
}

TEST(PlanTest, RefusesFixedBuffersThatOverlap) {
  MemoryBuffer a = Named("a", 0, 2, 8), b = Named("b", 1, 3, 8);
  a.fixed_offset = 0;
  b.fixed_offset = 4;
  EXPECT_EQ(ErrorOf({a, b}),
            "fixed offsets: buffer \"b\", live in [1, 3), at bytes [4, 12) "
            "overlaps buffer \"a\", live in [0, 2), at bytes [0, 8)");
}

}  // namespace
}  // namespace optrail::graph
