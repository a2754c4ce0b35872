#include "tuning/session/ranking.h"

#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Reads members whose cost is their number, with noise; how many readings each
// took.
std::vector<int> ReadAll(SequentialHalving& ranking, int members, double noise,
                         uint64_t seed) {
  Rng rng(seed);
  std::vector<int> readings(members);
  while (!ranking.done()) {
    std::map<int, double> costs;
    for (const int member : ranking.NextRound()) {
      ++readings[member];
      costs[member] = (10. + member) * std::exp(noise * rng.Gaussian());
    }
    ranking.AddRound(costs);
  }
  return readings;
}

TEST(SequentialHalvingTest, EveryStageHasAnEqualShareOfTheReadings) {
  SequentialHalving ranking(4, 32);
  // Two stages of 16: four rounds of four, eight rounds of two.
  EXPECT_THAT(ReadAll(ranking, 4, .3, 1), UnorderedElementsAre(12, 12, 4, 4));
  EXPECT_EQ(ranking.readings(), 32);
}

TEST(SequentialHalvingTest, EndsOnceDifferencesAreKnownAsWellAsTheyMatter) {
  SequentialHalving clear(4, 32);
  EXPECT_THAT(ReadAll(clear, 4, .001, 1), ElementsAre(3, 3, 3, 3));
  EXPECT_EQ(clear.readings(), 12);
  EXPECT_THAT(clear.Order(), ElementsAre(0, 1, 2, 3));
  // Where they vary, a lead of 10% is no reason to.
  SequentialHalving noisy(4, 32);
  ReadAll(noisy, 4, .01, 1);
  EXPECT_GT(noisy.readings(), 20);
  // Two that are as good as each other, however often they may be read.
  SequentialHalving equal(2, 200);
  for (int round = 0; !equal.done(); ++round) {
    equal.AddRound({{0, 1 + .0001 * (round % 3)}, {1, 1}});
  }
  EXPECT_EQ(equal.rounds(), 3);
}

// One that is better by more than that is seldom behind at the end.
TEST(SequentialHalvingTest, SeldomEndsTooEarly) {
  for (const int members : {2, 4}) {
    for (const double noise : {.001, .003, .01}) {
      int worse = 0;
      for (uint64_t seed = 1; seed <= 1000; ++seed) {
        Rng rng(seed);
        SequentialHalving ranking(members, 400);
        while (!ranking.done()) {
          std::map<int, double> costs;
          for (const int member : ranking.NextRound()) {
            costs[member] =
                std::exp((member == 0 ? 0 : .007) + noise * rng.Gaussian());
          }
          ranking.AddRound(costs);
        }
        worse += ranking.Order()[0] != 0;
      }
      EXPECT_LT(worse, 100) << noise;
    }
  }
}

TEST(SequentialHalvingTest, OfEqualsTheFirstGoesOn) {
  SequentialHalving ranking(6, 60);
  // Members 2 to 5 are equal, and each round another of them is first.
  for (int round = 0; !ranking.done(); ++round) {
    std::map<int, double> costs;
    for (const int member : ranking.NextRound()) {
      costs[member] =
          member < 2 ? 1.1 - .05 * member : 1 + .0002 * ((member + round) % 4);
    }
    ranking.AddRound(costs);
  }
  EXPECT_THAT(ranking.Order(), ElementsAre(2, 3, 4, 5, 1, 0));
}

TEST(SequentialHalvingTest, NeverReadsMoreThanItMay) {
  for (int members = 1; members < 12; ++members) {
    for (int readings = 0; readings < 60; ++readings) {
      SequentialHalving ranking(members, readings);
      int used = 0;
      for (const int one : ReadAll(ranking, members, .1, 1)) used += one;
      EXPECT_LE(used, readings) << members;
      EXPECT_EQ(ranking.Order().size(), members);
    }
  }
}

TEST(SequentialHalvingTest, OneMemberNeedsNoReading) {
  SequentialHalving ranking(1, 100);
  EXPECT_TRUE(ranking.done());
  EXPECT_THAT(ranking.NextRound(), IsEmpty());
  EXPECT_THAT(ranking.Order(), ElementsAre(0));
}

TEST(SequentialHalvingTest, EachRoundStartsWithAnotherMember) {
  SequentialHalving ranking(3, 30);
  EXPECT_THAT(ranking.NextRound(), ElementsAre(0, 1, 2));
  ranking.AddRound({{0, 1}, {1, 2}, {2, 3}});
  EXPECT_THAT(ranking.NextRound(), ElementsAre(1, 2, 0));
}

TEST(SequentialHalvingTest, AReadingThatIsTwiceTooSlowMovesNothing) {
  SequentialHalving ranking(2, 14);
  for (int round = 0; !ranking.done(); ++round) {
    ranking.AddRound({{0, round == 2 ? 20 : 10}, {1, 10.5}});
  }
  EXPECT_THAT(ranking.Order(), ElementsAre(0, 1));
}

TEST(SequentialHalvingTest, WhatFailsIsRankedNoMore) {
  SequentialHalving ranking(3, 30);
  ranking.AddRound({{0, 1}, {2, 3}});
  ranking.Disqualify(1);
  ReadAll(ranking, 3, 0, 1);
  EXPECT_THAT(ranking.Order(), ElementsAre(0, 2));
  ranking.Disqualify(0);
  EXPECT_TRUE(ranking.done());
  EXPECT_THAT(ranking.Order(), ElementsAre(2));
}

TEST(SequentialHalvingTest, FindsTheBestThroughNoise) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SequentialHalving ranking(4, 32);
    ReadAll(ranking, 4, .1, seed);  // the next is 10% slower
    found += ranking.Order()[0] == 0;
  }
  EXPECT_GE(found, 175);
}

TEST(SequentialHalvingTest, ItsSpreadIsThatOfOneReadingBesideTheOthers) {
  for (const double noise : {.003, .05}) {
    SequentialHalving ranking(8, 400);
    Rng rng(7);
    for (int round = 1; round <= 50; ++round) {
      // What a round shares is no noise between its members, and neither is an
      // outlier.
      const double shared = std::exp(.3 * rng.Gaussian());
      std::map<int, double> costs;
      for (int member = 0; member < 8; ++member) {
        costs[member] =
            shared * (10. + member) * std::exp(noise * rng.Gaussian());
      }
      if (round % 7 == 0) costs.begin()->second *= 2;
      ranking.AddRound(costs);
    }
    EXPECT_NEAR(ranking.Spread(), noise, .2 * noise);
  }
}

TEST(SequentialHalvingTest, OneMemberOrOneRoundHasNoSpread) {
  SequentialHalving alone(1, 100);
  EXPECT_EQ(alone.Spread(), 0);
  SequentialHalving once(4, 4);
  once.AddRound({{0, 1.}, {1, 2.}, {2, 3.}, {3, 4.}});
  EXPECT_EQ(once.Spread(), 0);
}

TEST(ReadingsWanted, GrowWithTheSquareOfTheSpreadAndEnd) {
  EXPECT_EQ(ReadingsWanted(0), 0);
  EXPECT_EQ(ReadingsWanted(.003), 1);
  EXPECT_EQ(ReadingsWanted(.01), 6);
  EXPECT_EQ(ReadingsWanted(.02), 22);
  EXPECT_EQ(ReadingsWanted(10), kMostRankReadings);
}

// What ReadingsWanted promises: two that differ by what is worth finding are
// told apart in more than nine of ten rankings.
TEST(ReadingsWanted, TellsTwoApart) {
  constexpr double kSpread = .02;
  int right = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    SequentialHalving ranking(2, 2 * ReadingsWanted(kSpread));
    while (!ranking.done()) {
      std::map<int, double> costs;
      for (const int member : ranking.NextRound()) {
        costs[member] = std::exp(member == 0 ? kWorthFinding : 0) *
                        std::exp(kSpread * rng.Gaussian());
      }
      ranking.AddRound(costs);
    }
    right += ranking.Order()[0] == 1;
  }
  EXPECT_GT(right, 900);
}

}  // namespace
}  // namespace optrail::tuning
