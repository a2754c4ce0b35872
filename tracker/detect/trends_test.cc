#include "tracker/detect/trends.h"

#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/detect.h"

namespace optrail::tracker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<double> Series(int n, double noise,
                           const std::function<double(int)>& level,
                           uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<double> values;
  for (int t = 0; t < n; ++t) {
    values.push_back(level(t) + noise * rng.Gaussian());
  }
  return values;
}

TEST(SeasonOf, FindsWhatRepeats) {
  const std::vector<double> season = SeasonOf(Series(240, .2, [](int t) {
    return 100 + .1 * t + 5 * std::sin(M_PI * t / 6);
  }));
  ASSERT_THAT(season, SizeIs(240));
  double mean = 0;
  for (int t = 0; t < 240; ++t) {
    EXPECT_NEAR(season[t], 5 * std::sin(M_PI * t / 6), .5);
    EXPECT_EQ(season[t], season[t % 12]);
    mean += season[t] / 240;
  }
  EXPECT_NEAR(mean, 0, 1e-9);
}

TEST(SeasonOf, IsNothingInNoiseAndSteps) {
  for (int seed = 1; seed <= 50; ++seed) {
    EXPECT_THAT(SeasonOf(Series(
                    200, 1, [](int t) { return t < 120 ? 100 : 110; }, seed)),
                IsEmpty());
  }
  EXPECT_THAT(SeasonOf({}), IsEmpty());
  EXPECT_THAT(SeasonOf(std::vector<double>(100, 3)), IsEmpty());
}

TEST(SeasonOf, TeethThatComeByTheClockAreNoChanges) {
  for (const int length : {5, 10, 20}) {
    const auto teeth = [&](int t) { return t / length % 2 == 0 ? 100 : 110; };
    EXPECT_THAT(DetectOffline(Series(400, 1, teeth)), IsEmpty()) << length;
    const std::vector<ChangePoint> changes = DetectOffline(
        Series(400, 1, [&](int t) { return teeth(t) + (t < 230 ? 0 : 5); }));
    ASSERT_THAT(changes, SizeIs(1)) << length;
    EXPECT_NEAR(changes[0].index, 230, 3);
  }
}

TEST(BreaksOfTrend, FindsWhereASeriesThatNeverRestsTurns) {
  const auto breaks = BreaksOfTrend(Series(
      200, 1, [](int t) { return t < 120 ? .5 * t : 60 - .8 * (t - 120); }));
  ASSERT_TRUE(breaks.has_value());
  ASSERT_THAT(*breaks, SizeIs(1));
  EXPECT_NEAR((*breaks)[0], 120, 4);
}

TEST(BreaksOfTrend, SaysNothingOfLevels) {
  for (int seed = 1; seed <= 50; ++seed) {
    EXPECT_FALSE(BreaksOfTrend(Series(
        200, 1, [](int) { return 100; }, seed)));
  }
  EXPECT_FALSE(BreaksOfTrend({}));
  EXPECT_FALSE(BreaksOfTrend(std::vector<double>(100, 3)));
}

TEST(BreaksOfTrend, LeavesARampBetweenLevelsAlone) {
  EXPECT_FALSE(BreaksOfTrend(Series(300, 1, [](int t) {
    return t < 150 ? 100. : t < 200 ? 100. + .4 * (t - 150) : 120.;
  })));
}

}  // namespace
}  // namespace optrail::tracker
