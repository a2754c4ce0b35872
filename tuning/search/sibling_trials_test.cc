#include "tuning/search/sibling_trials.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr double kFailed = std::numeric_limits<double>::infinity();

SiblingTrial Of(int sibling, int level, double log_cost) {
  return {Levels{static_cast<uint16_t>(level)}, sibling, log_cost};
}

double NeverTried(const Levels&) { return std::nan(""); }

int CountOf(const SiblingTrials& heard, int sibling) {
  int count = 0;
  for (const SiblingTrial& trial : heard.Usable()) {
    count += trial.sibling == sibling;
  }
  return count;
}

TEST(SiblingTrialsTest, FailuresCountOnlyOnceSomethingHasWorked) {
  SiblingTrials heard;
  heard.Add(Of(0, 1, kFailed));
  heard.Add(Of(1, 1, 3));
  EXPECT_EQ(heard.Usable().size(), 1u);
  heard.Add(Of(0, 2, 5));
  EXPECT_EQ(heard.Usable().size(), 3u);
}

TEST(SiblingTrialsTest, EachSiblingIsHeardHoweverManyTrialsAnotherHad) {
  SiblingTrials heard;
  for (int i = 0; i < 1000; ++i) heard.Add(Of(2, i, i));
  const int most = CountOf(heard, 2);
  EXPECT_EQ(most, 150);
  for (int i = 0; i < 1000; ++i) heard.Add(Of(i % 6, i, i));
  for (int k = 0; k < kMostSiblings; ++k) EXPECT_GE(CountOf(heard, k), 37) << k;
  EXPECT_EQ(heard.Usable().size(), 150u);
  // Those heard first remain.
  EXPECT_EQ(heard.Usable()[0].levels, Levels{0});
}

TEST(LogCostsHereTest, ShiftsByWhatBothHaveTried) {
  const std::vector<SiblingTrial> trials = {Of(0, 1, 5), Of(0, 2, 7),
                                            Of(0, 3, 6)};
  const auto cost_of = [](const Levels& levels) {
    return levels[0] == 2 ? std::exp(4.) : kFailed;
  };
  // 3 more than here; cut at the 80% quantile of three, the middle one.
  EXPECT_THAT(LogCostsHere(trials, cost_of, 100.0),
              ElementsAre(DoubleEq(2), DoubleEq(3), DoubleEq(3)));
}

TEST(LogCostsHereTest, ShiftsByTheMeansAndCapsFailures) {
  const std::vector<SiblingTrial> trials = {Of(0, 1, 5), Of(0, 2, kFailed),
                                            Of(0, 3, 6), Of(1, 1, 9)};
  EXPECT_THAT(
      LogCostsHere(trials, NeverTried, 2.0),
      ElementsAre(DoubleEq(1.5), DoubleEq(1.5), DoubleEq(1.5), DoubleEq(2)));
  // Nothing has worked here: only differences mean anything.
  EXPECT_THAT(LogCostsHere(trials, NeverTried, absl::nullopt),
              ElementsAre(5, 5, 5, 9));
}

TEST(SpreadOfTest, IsAroundEachSiblingsMean) {
  const SiblingSpread spread =
      SpreadOf({Of(0, 1, 1), Of(0, 2, 3), Of(1, 1, 100), Of(3, 1, 7),
                Of(3, 2, 7), Of(3, 3, kFailed)});
  EXPECT_DOUBLE_EQ(spread.squares, 2);
  EXPECT_EQ(spread.freedom, 2);
}

}  // namespace
}  // namespace optrail::tuning
