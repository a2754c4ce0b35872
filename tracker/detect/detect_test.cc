#include "tracker/detect/detect.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/evaluation/synthetic.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int> Indices(const std::vector<ChangePoint>& changes) {
  std::vector<int> indices;
  for (const ChangePoint& change : changes) indices.push_back(change.index);
  return indices;
}

class EveryNoise : public ::testing::TestWithParam<NoiseKind> {};

TEST_P(EveryNoise, HasNoChangesOfItsOwn) {
  int found = 0;
  constexpr int kSeries = 40;
  for (int seed = 1; seed <= kSeries; ++seed) {
    found += DetectOffline(SyntheticSeries(GetParam(), 300, {}, seed)).size();
  }
  // 12000 points: 0.2 per 1000 would be 2.4.
  EXPECT_LE(found, 2);
}

TEST_P(EveryNoise, DoesNotHideAStepOfTenPercent) {
  int found = 0;
  constexpr int kSeries = 40;
  for (int seed = 1; seed <= kSeries; ++seed) {
    const std::vector<double> values = SyntheticSeries(
        GetParam(), 300, {{150, seed % 2 == 0 ? 1.1 : 1 / 1.1}}, seed);
    for (const int index : Indices(DetectOffline(values))) {
      found += std::abs(index - 150) <= 5;
    }
  }
  EXPECT_GE(found, GetParam() == NoiseKind::kRamp ? 34 : 39);
}

TEST_P(EveryNoise, GivesTheSameTwice) {
  const std::vector<double> values =
      SyntheticSeries(GetParam(), 300, {{100, 1.04}, {200, 1.04}}, 5);
  const auto a = DetectOffline(values), b = DetectOffline(values);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].index, b[k].index);
    EXPECT_EQ(a[k].confidence, b[k].confidence);
    EXPECT_EQ(a[k].relative_change, b[k].relative_change);
  }
}

TEST_P(EveryNoise, DoesNotDependOnTheUnit) {
  // A power of two, so that not even rounding differs.
  std::vector<double> values =
      SyntheticSeries(GetParam(), 300, {{100, 1.06}, {200, 0.95}}, 6);
  const std::vector<int> expected = Indices(DetectOffline(values));
  for (double& v : values) v *= 0x1p-200;
  EXPECT_EQ(Indices(DetectOffline(values)), expected);
}

INSTANTIATE_TEST_SUITE_P(, EveryNoise, ::testing::ValuesIn(kAllNoiseKinds),
                         [](const auto& info) { return Name(info.param); });

TEST(DetectOffline, DescribesAStep) {
  const auto changes =
      DetectOffline(SyntheticSeries(NoiseKind::kNormal, 200, {{80, 1.05}}, 1));
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].index, 80);
  EXPECT_GT(changes[0].confidence, 0.999);
  EXPECT_NEAR(changes[0].level_before, 100, 0.5);
  EXPECT_NEAR(changes[0].level_after, 105, 0.5);
  EXPECT_NEAR(changes[0].relative_change, 0.05, 0.006);
}

TEST(DetectOffline, ItsIntervalCoversTheTruthAboutAsOftenAsItSays) {
  int covered = 0, found = 0;
  for (int seed = 1; seed <= 300; ++seed) {
    for (const ChangePoint& change : DetectOffline(SyntheticSeries(
             NoiseKind::kNormal, 120, {{60, 1.05}}, 1000 + seed))) {
      ++found;
      covered += change.relative_change_low <= 0.05 &&
                 0.05 <= change.relative_change_high;
    }
  }
  EXPECT_GE(found, 298);
  EXPECT_GE(covered, 0.92 * found);
  EXPECT_LE(covered, 0.99 * found);
}

// Skewed and wandering noise are not what the range assumes.
TEST(DetectOffline, ItsRangeHoldsTheTruePlaceAboutAsOftenAsItSays) {
  for (const auto& [kind, least] :
       {std::pair<NoiseKind, double>{NoiseKind::kNormal, 0.93},
        {NoiseKind::kBimodal, 0.93},
        {NoiseKind::kOutliers, 0.93},
        {NoiseKind::kSkewed, 0.9},
        {NoiseKind::kWandering, 0.9}}) {
    int covered = 0, found = 0;
    for (int seed = 1; seed <= 300; ++seed) {
      const auto changes =
          DetectOffline(SyntheticSeries(kind, 120, {{60, 1.05}}, 2000 + seed));
      if (changes.size() != 1) continue;
      ++found;
      covered += changes[0].earliest <= 60 && 60 <= changes[0].latest;
    }
    EXPECT_GE(found, 250) << Name(kind);
    EXPECT_GE(covered, least * found) << Name(kind) << " of " << found;
  }
}

TEST(DetectOffline, FindsSeveralStepsOfAnySize) {
  const auto changes = DetectOffline(SyntheticSeries(
      NoiseKind::kNormal, 400, {{100, 1.04}, {200, 20}, {300, 1 / 30.0}}, 2));
  EXPECT_THAT(Indices(changes), ElementsAre(100, 200, 300));
}

TEST(DetectOffline, FindsAStepWithoutAnyNoise) {
  std::vector<double> values(60, 1000.0);
  values.resize(100, 1001.0);
  EXPECT_THAT(Indices(DetectOffline(values)), ElementsAre(60));
}

TEST(DetectOffline, OfTooFewPointsIsEmpty) {
  EXPECT_THAT(DetectOffline({}), IsEmpty());
  EXPECT_THAT(DetectOffline(std::vector<double>{1}), IsEmpty());
  EXPECT_THAT(DetectOffline(std::vector<double>{1, 2}), IsEmpty());
  EXPECT_THAT(DetectOffline(std::vector<double>{1, 1, 1, 1, 5, 5, 5, 5, 5}),
              IsEmpty());
}

TEST(DetectOffline, OfAConstantIsEmpty) {
  for (const double value : {0.0, 1.0, -3e300, 5e-324}) {
    EXPECT_THAT(DetectOffline(std::vector<double>(100, value)), IsEmpty());
  }
}

TEST(DetectOffline, PassesOverWhatIsNotFinite) {
  std::vector<double> values =
      SyntheticSeries(NoiseKind::kNormal, 200, {{100, 1.1}}, 3);
  values[0] = std::numeric_limits<double>::quiet_NaN();
  values[50] = std::numeric_limits<double>::infinity();
  values[99] = -std::numeric_limits<double>::infinity();
  values[150] = -std::numeric_limits<double>::quiet_NaN();
  const auto changes = DetectOffline(values);
  ASSERT_THAT(Indices(changes), ElementsAre(100));
  EXPECT_EQ(changes[0].earliest, 99) << "the infinite one is a suspect, too";
  EXPECT_EQ(changes[0].latest, 100);
  EXPECT_THAT(DetectOffline(std::vector<double>(
                  100, std::numeric_limits<double>::quiet_NaN())),
              IsEmpty());
}

TEST(DetectOffline, HandlesTheWholeRangeOfDoubles) {
  const double max = std::numeric_limits<double>::max();
  for (const double low : {-max, 0.0, 5e-324, 1.0}) {
    std::vector<double> values(50, low);
    values.resize(100, max);
    const auto changes = DetectOffline(values);
    ASSERT_THAT(Indices(changes), ElementsAre(50)) << low;
    EXPECT_TRUE(std::isfinite(changes[0].relative_change)) << low;
    EXPECT_TRUE(std::isfinite(changes[0].relative_change_low)) << low;
    EXPECT_TRUE(std::isfinite(changes[0].level_after)) << low;
  }
}

TEST(DetectOffline, NegativeLevelsChangeRelativeToTheirSize) {
  std::vector<double> values =
      SyntheticSeries(NoiseKind::kNormal, 200, {{100, 1.1}}, 4);
  for (double& v : values) v = -v;
  const auto changes = DetectOffline(values);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_NEAR(changes[0].relative_change, -0.1, 0.01);
}

TEST(DetectOffline, TakesManyPoints) {
  std::vector<Step> steps;
  std::vector<int> expected;
  for (int t = 1000; t < 50000; t += 1000) {
    steps.push_back({t, t % 2000 == 0 ? 1.1 : 1 / 1.1});
    expected.push_back(t);
  }
  const std::vector<int> found = Indices(
      DetectOffline(SyntheticSeries(NoiseKind::kNormal, 50000, steps, 5)));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    EXPECT_NEAR(found[k], expected[k], 2);
  }
}

}  // namespace
}  // namespace optrail::tracker
