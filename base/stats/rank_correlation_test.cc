#include "base/stats/rank_correlation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optrail {
namespace {

using ::testing::ElementsAre;

TEST(RankCorrelationTest, TiesShareTheMeanOfTheirRanks) {
  EXPECT_THAT(Ranks({3, 1, 3, 2}), ElementsAre(3.5, 1, 3.5, 2));
}

TEST(RankCorrelationTest, OnlyTheOrderCounts) {
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {10, 100, 1000}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {7, 7, 7}), 0);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {1, 3, 2, 4}), 0.8);
}

}  // namespace
}  // namespace optrail
