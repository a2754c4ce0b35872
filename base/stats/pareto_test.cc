#include "base/stats/pareto.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TEST(Dominates, IsBetterInOneAndWorseInNone) {
  EXPECT_TRUE(Dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(Dominates({1, 2}, {1, 2})) << "the same";
  EXPECT_FALSE(Dominates({1, 4}, {2, 3}));
  EXPECT_FALSE(Dominates({1, kUnknown}, {2, 3}));
  EXPECT_FALSE(Dominates({1, 1}, {2, kUnknown}));
}

TEST(ParetoFront, HoldsWhatNoOtherBeats) {
  EXPECT_THAT(ParetoFront({}), IsEmpty());
  EXPECT_THAT(ParetoFront({{3}, {1}, {2}, {1}}), ElementsAre(1, 3));
  EXPECT_THAT(ParetoFront({{1, 9}, {2, 3}, {4, 3}, {2, kUnknown}}),
              ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace optrail
