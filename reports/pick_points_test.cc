#include "reports/pick_points.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<double> Noise(int n) {
  Rng rng(5);
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(100 + rng.Gaussian());
  return values;
}

TEST(PickPointsTest, KeepsAllPointsOfAShortSeries) {
  EXPECT_THAT(PickPoints({3, 1, 2}, {}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(PickPoints({}, {}, 3), IsEmpty());
}

TEST(PickPointsTest, StaysWithinTheLimitAndIsAscending) {
  for (const int limit : {2, 3, 16, 99, 100}) {
    const std::vector<int> picked = PickPoints(Noise(1000), {}, limit);
    EXPECT_LE(picked.size(), limit);
    EXPECT_TRUE(std::is_sorted(picked.begin(), picked.end()));
    EXPECT_EQ(picked.front(), 0);
    EXPECT_EQ(picked.back(), 999);
  }
}

TEST(PickPointsTest, KeepsTheExtremesOfTheSeries) {
  std::vector<double> values = Noise(1000);
  values[333] = 500;
  values[777] = 1;
  const std::vector<int> picked = PickPoints(values, {}, 20);
  EXPECT_THAT(picked, Contains(333));
  EXPECT_THAT(picked, Contains(777));
}

TEST(PickPointsTest, KeepsWhatTheCallerNamesAndIgnoresWhatIsOutside) {
  const std::vector<int> picked =
      PickPoints(Noise(1000), {501, -1, 1000, 17}, 10);
  EXPECT_THAT(picked, Contains(501));
  EXPECT_THAT(picked, Contains(17));
}

TEST(PickPointsTest, NeverTakesNaNForAnExtreme) {
  std::vector<double> values = Noise(100);
  values[50] = std::numeric_limits<double>::quiet_NaN();
  for (int i : PickPoints(values, {}, 30)) EXPECT_NE(i, 50);
}

}  // namespace
}  // namespace optrail::reports
