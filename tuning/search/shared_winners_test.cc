#include "tuning/search/shared_winners.h"

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

TEST(SharedWinnersTest, OffersTheBestOfASiblingOnce) {
  SharedWinners winners({{1}, {0}, {}});
  EXPECT_FALSE(winners.For(1).has_value());
  winners.Report(0, "a", 3, true);
  EXPECT_FALSE(winners.For(0).has_value());  // its own
  EXPECT_FALSE(winners.For(2).has_value());  // no sibling
  const auto offer = winners.For(1);
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->config, "a");
  EXPECT_EQ(offer->from, 0);
  winners.Take(1, *offer);
  EXPECT_FALSE(winners.For(1).has_value());  // it is under way
  winners.Report(1, "b", 5, true);
  EXPECT_FALSE(winners.For(1).has_value());  // and was tried
}

TEST(SharedWinnersTest, ComparesGainsSinceACommonConfig) {
  SharedWinners winners({{1}, {0}});
  winners.Report(0, "a", 3, true);
  winners.Take(1, *winners.For(1));
  winners.Report(1, "a", 50, true);
  // The sibling went on by 20%, the task by nothing.
  winners.Report(0, "c", 2.4, true);
  const auto all = winners.For(1);
  ASSERT_TRUE(all.has_value());
  // The task went on as far by itself.
  winners.Report(1, "d", 40, true);
  EXPECT_FALSE(winners.For(1).has_value());
  // Half as far.
  winners.Report(1, "d", 44.7, true);
  const auto half = winners.For(1);
  ASSERT_TRUE(half.has_value());
  EXPECT_NEAR(half->gain, all->gain / 2, .01);
}

TEST(SharedWinnersTest, TrustsLessTheMoreOffersCameToNothing) {
  SharedWinners winners({{1, 2}, {0}, {0}});
  winners.Report(0, "own", 1, true);
  winners.Report(1, "x", 1, true);
  const double before = winners.For(0)->gain;
  winners.Take(0, *winners.For(0));
  winners.Report(0, "own", 1, true);
  winners.Report(2, "y", 1, true);
  EXPECT_LT(winners.For(0)->gain, before);
}

TEST(SharedWinnersTest, WaitsForTheAnswerOfWhatIsUnderWay) {
  SharedWinners winners({{1}, {0}});
  winners.Report(0, "a", 3, true);
  winners.Take(1, *winners.For(1));
  winners.Report(1, "b", 5, /*answered=*/false);
  winners.Report(0, "c", 1, true);
  EXPECT_FALSE(winners.For(1).has_value());
  winners.Report(1, "b", 5, /*answered=*/true);
  EXPECT_EQ(winners.For(1)->config, "c");
}

TEST(SharedWinnersTest, WhatATaskCannotTryIsNotOfferedAgain) {
  SharedWinners winners({{1}, {0}});
  winners.Report(0, "a", 3, true);
  winners.Take(1, *winners.For(1));
  winners.Refuse(1);
  EXPECT_FALSE(winners.For(1).has_value());
  winners.Refuse(1);  // nothing is under way
}

}  // namespace
}  // namespace optrail::tuning
