#include "tracker/detect/slopes.h"

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kPenalty = 25;
constexpr double kSlopeShare = 0.8;

std::vector<double> UnitNoise(int n, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(n);
  for (double& v : values) v = rng.Gaussian();
  return values;
}

TEST(SeparateSlopes, LeavesStepsAlone) {
  std::vector<double> values = UnitNoise(100, 1);
  for (int t = 50; t < 100; ++t) values[t] += 5;
  const Slopes slopes = SeparateSlopes(values, {50}, 1, kPenalty, kSlopeShare);
  EXPECT_THAT(slopes.steps, ElementsAre(50));
  EXPECT_THAT(slopes.drift, IsEmpty());
}

TEST(SeparateSlopes, TakesAStaircaseForASlope) {
  std::vector<double> values = UnitNoise(200, 2);
  for (int t = 0; t < 200; ++t) values[t] += 0.1 * t;
  const Slopes slopes =
      SeparateSlopes(values, {40, 80, 120, 160}, 1, kPenalty, kSlopeShare);
  EXPECT_THAT(slopes.steps, IsEmpty());
  ASSERT_EQ(slopes.drift.size(), 200);
  EXPECT_NEAR(slopes.drift[199] - slopes.drift[0], 19.9, 1);
}

TEST(SeparateSlopes, KeepsAStepOnASlope) {
  std::vector<double> values = UnitNoise(200, 3);
  for (int t = 0; t < 200; ++t) values[t] += 0.1 * t + (t >= 100 ? 12 : 0);
  const Slopes slopes =
      SeparateSlopes(values, {30, 65, 100, 135, 170}, 1, kPenalty, kSlopeShare);
  EXPECT_THAT(slopes.steps, ElementsAre(100));
  ASSERT_EQ(slopes.drift.size(), 200);
  EXPECT_NEAR(slopes.drift[199] - slopes.drift[0], 19.9, 2.5)
      << "the step is no part of the drift";
}

TEST(SeparateSlopes, DoesNotReportWhereARampBeginsAndEnds) {
  std::vector<double> values = UnitNoise(300, 4);
  for (int t = 0; t < 300; ++t) {
    values[t] += 0.15 * std::min(100, std::max(0, t - 100));
  }
  const Slopes slopes = SeparateSlopes(values, {104, 122, 140, 158, 176, 194},
                                       1, kPenalty, kSlopeShare);
  EXPECT_THAT(slopes.steps, IsEmpty());
  EXPECT_FALSE(slopes.drift.empty());
}

TEST(SeparateSlopes, OfNoStairsIsNothing) {
  const Slopes slopes =
      SeparateSlopes(UnitNoise(50, 5), {}, 1, kPenalty, kSlopeShare);
  EXPECT_THAT(slopes.steps, IsEmpty());
  EXPECT_THAT(slopes.drift, IsEmpty());
}

}  // namespace
}  // namespace optrail::tracker
