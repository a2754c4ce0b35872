#include "tracker/bisect/noisy_bisection.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "tracker/bisect/evaluation/simulation.h"

namespace optrail::tracker {
namespace {

BisectOptions Options() {
  BisectOptions options;
  options.log_effect = .1;
  options.effect_standard_error = .005;
  return options;
}

// Without noise.
BisectMeasurement Exact(bool bad) { return {bad ? .1 : 0., .002}; }

TEST(NoisyBisectionTest, WithoutNoiseItIsBinarySearch) {
  for (int culprit = 1; culprit <= 64; ++culprit) {
    NoisyBisection search(64, Options());
    const int forecast = search.ExpectedLooks();
    while (const auto commit = search.Next()) {
      EXPECT_GT(search.ExpectedLooks(), 0);
      search.Tell(*commit, Exact(*commit >= culprit));
    }
    const BisectAnswer answer = search.Answer();
    EXPECT_TRUE(answer.is_sure);
    EXPECT_EQ(answer.first, culprit);
    EXPECT_EQ(answer.last, culprit);
    EXPECT_NEAR(forecast, search.measurements(), 2) << culprit;
    EXPECT_EQ(search.ExpectedLooks(), 0);
    EXPECT_LE(search.builds(), 7) << culprit;
  }
}

TEST(NoisyBisectionTest, OneCommitNeedsNoLook) {
  NoisyBisection search(1, Options());
  EXPECT_EQ(search.Next(), absl::nullopt);
  EXPECT_EQ(search.Answer().first, 1);
  EXPECT_TRUE(search.Answer().is_sure);
}

TEST(NoisyBisectionTest, SettlesDoubtByMeasuringAgainBeforeBuilding) {
  NoisyBisection search(64, Options());
  const int first = *search.Next();
  // In the middle between good and bad: it says nothing.
  search.Tell(first, {.05, .02});
  EXPECT_EQ(search.Next(), first);
  search.Tell(first, Exact(true));
  EXPECT_NE(search.Next(), first);
  EXPECT_EQ(search.builds(), 1);
  EXPECT_EQ(search.measurements(), 2);
}

TEST(NoisyBisectionTest, RecoversFromAMeasurementThatWasWrong) {
  NoisyBisection search(32, Options());
  bool lied = false;
  while (const auto commit = search.Next()) {
    const bool bad = *commit >= 20;
    search.Tell(*commit, Exact(lied ? bad : !bad));
    lied = true;
  }
  EXPECT_EQ(search.Answer().first, 20);
}

TEST(NoisyBisectionTest, WorksForWhatGotFaster) {
  BisectOptions options = Options();
  options.log_effect = -.1;
  NoisyBisection search(16, options);
  while (const auto commit = search.Next()) {
    search.Tell(*commit, {*commit >= 5 ? -.1 : 0., .002});
  }
  EXPECT_EQ(search.Answer().first, 5);
}

TEST(NoisyBisectionTest, NamesTheCommitsThatOnesNotBuildingHide) {
  NoisyBisection search(16, Options());
  while (const auto commit = search.Next()) {
    // The culprit is 9; 8 and 9 do not build.
    if (*commit == 8 || *commit == 9) {
      search.Skip(*commit);
    } else {
      search.Tell(*commit, Exact(*commit >= 9));
    }
  }
  const BisectAnswer answer = search.Answer();
  EXPECT_TRUE(answer.is_sure);
  EXPECT_EQ(answer.first, 8);
  EXPECT_EQ(answer.last, 10);
}

TEST(NoisyBisectionTest, NeverAsksForASkippedCommitAndEndsWhenAllAre) {
  NoisyBisection search(10, Options());
  std::set<int> asked;
  while (const auto commit = search.Next()) {
    EXPECT_TRUE(asked.insert(*commit).second);
    search.Skip(*commit);
  }
  EXPECT_EQ(asked.size(), 9);
  EXPECT_EQ(search.Answer().first, 1);
  EXPECT_EQ(search.Answer().last, 10);
}

TEST(NoisyBisectionTest, LooksAwayFromWhatDoesNotBuild) {
  NoisyBisection search(64, Options());
  const int first = *search.Next();
  search.Skip(first);
  EXPECT_GT(std::abs(*search.Next() - first), 1);
}

TEST(NoisyBisectionTest, ABuildThatFailsLaterDoesNotUndoWhatWasMeasured) {
  NoisyBisection search(8, Options());
  for (const int commit : {4, 5}) search.Tell(commit, Exact(commit == 5));
  const BisectAnswer before = search.Answer();
  EXPECT_EQ(before.first, 5);
  EXPECT_EQ(before.last, 5);
  ASSERT_TRUE(before.is_sure);
  EXPECT_EQ(search.NextBatch(4), std::vector<int>({4, 5}));
  search.Skip(4);
  search.Skip(5);
  const BisectAnswer after = search.Answer();
  EXPECT_EQ(after.first, 5);
  EXPECT_EQ(after.last, 5);
  EXPECT_EQ(after.probability, before.probability);
  // It was a look: the search ends.
  EXPECT_EQ(search.Next(), absl::nullopt);
}

TEST(NoisyBisectionTest, WhatFailsTwiceAfterALookIsNotAskedForAgain) {
  NoisyBisection search(2, Options());
  search.Tell(1, {.05, .02});  // in the middle: it says nothing
  ASSERT_EQ(search.Next(), 1);
  search.Skip(1);
  ASSERT_EQ(search.Next(), 1);
  search.Skip(1);
  EXPECT_EQ(search.Next(), absl::nullopt);
  EXPECT_FALSE(search.Answer().is_sure);
}

TEST(NoisyBisectionTest, EqualBytesLeaveNoDoubt) {
  NoisyBisection search(8, Options());
  search.TellCertain(4, false);
  EXPECT_EQ(search.Probability(4), 0);
  search.TellCertain(5, true);
  EXPECT_EQ(search.Probability(5), 1);
  EXPECT_EQ(search.Next(), absl::nullopt);
  // Contradicting evidence changes nothing.
  search.TellCertain(4, true);
  search.Tell(5, Exact(false));
  EXPECT_EQ(search.Answer().first, 5);
}

TEST(NoisyBisectionTest, AbsurdReadingsAreNoEvidence) {
  NoisyBisection search(8, Options());
  search.Tell(4, {1e6, 1e-9});
  search.Tell(4, {-1e6, 0});
  double sum = 0;
  for (int k = 1; k <= 8; ++k) sum += search.Probability(k);
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(search.Probability(1), .125, .01);
}

TEST(NoisyBisectionTest, EndsWhereMeasuringCannotTell) {
  BisectOptions options = Options();
  options.max_measurements = 50;
  NoisyBisection search(8, options);
  while (const auto commit = search.Next()) search.Tell(*commit, {.05, 10});
  EXPECT_LE(search.measurements(), 50);
  EXPECT_FALSE(search.Answer().is_sure);
}

TEST(NoisyBisectionTest, FindsTheCommitUnderNoiseWithAlmostNoBuildTooMany) {
  BisectSimulation simulation;
  simulation.searches = 150;
  for (const double spread : {.01, .03}) {
    simulation.spread = spread;
    const BisectSimulationResult result = Simulate(simulation);
    EXPECT_GE(result.right, .95) << spread;
    EXPECT_LE(result.builds, 7) << spread;
  }
}

TEST(NoisyBisectionTest, SeveralAtOnceCutIntoEqualParts) {
  for (const int at_once : {1, 2, 3, 7}) {
    NoisyBisection search(64, Options());
    const std::vector<int> batch = search.NextBatch(at_once);
    ASSERT_EQ(batch.size(), at_once);
    int before = 0;
    for (const int commit : batch) {
      EXPECT_NEAR(commit - before, 64. / (at_once + 1), 1.5) << at_once;
      before = commit;
    }
  }
  // One that is skipped in the midst of a batch is no harm.
  for (int culprit = 1; culprit <= 40; ++culprit) {
    NoisyBisection search(40, Options());
    int turns = 0;
    while (true) {
      const std::vector<int> batch = search.NextBatch(3);
      if (batch.empty()) break;
      ++turns;
      for (const int commit : batch) {
        if (commit % 10 == 7) {
          search.Skip(commit);
        } else {
          search.Tell(commit, Exact(commit >= culprit));
        }
      }
    }
    const BisectAnswer answer = search.Answer();
    EXPECT_TRUE(answer.is_sure);
    EXPECT_LE(answer.first, culprit);
    EXPECT_GE(answer.last, culprit);
    EXPECT_LE(answer.last - answer.first, 1);
    EXPECT_LE(turns, 6) << culprit;
  }
}

TEST(NoisyBisectionTest, SeveralAtOnceNeedFewerTurnsUnderNoise) {
  BisectSimulation simulation;
  simulation.searches = 150;
  simulation.spread = .02;
  const BisectSimulationResult one = Simulate(simulation);
  simulation.at_once = 3;
  const BisectSimulationResult three = Simulate(simulation);
  EXPECT_GE(three.right, .95);
  EXPECT_LE(three.turns, .7 * one.turns);
}

TEST(NoisyBisectionTest, FindsTheCommitAmongBrokenOnes) {
  BisectSimulation simulation;
  simulation.searches = 150;
  simulation.broken = .2;
  const BisectSimulationResult result = Simulate(simulation);
  EXPECT_GE(result.right, .95);
  EXPECT_LE(result.builds, 9);
}

TEST(WidenedStandardErrorTest, IsWiderWhereFewRoundsTellTheSpread) {
  // t(0.975, 5) = 2.5706, z(0.975) = 1.95996.
  EXPECT_NEAR(WidenedStandardError(1, 6), 2.5706 / 1.95996, 1e-4);
  EXPECT_NEAR(WidenedStandardError(1, 1000), 1, .002);
}

}  // namespace
}  // namespace optrail::tracker
