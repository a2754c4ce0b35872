#include "tuning/replay/score.h"

#include <cmath>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

// Times 1, 1.04, 2, 4 and a failure.
Recording FiveConfigs() {
  Recording recording;
  for (const double time : {2.0, 1.0, 0.0, 4.0, 1.04}) {
    RecordedConfig config;
    config.time_ms = time;
    if (time == 0) config.outcome = proto::COMPILE_ERROR;
    recording.configs.push_back(config);
  }
  return recording;
}

TEST(ScoreTest, OptimumLeavesFailuresOut) {
  EXPECT_EQ(OptimumMs(FiveConfigs()), 1.0);
}

TEST(ScoreTest, OneDrawExpectsTheMeanFraction) {
  EXPECT_NEAR(RandomExpectedFraction(FiveConfigs(), 1),
              (0.5 + 1 + 0 + 0.25 + 1 / 1.04) / 5, 1e-12);
}

TEST(ScoreTest, AllDrawsFindTheOptimum) {
  EXPECT_NEAR(RandomExpectedFraction(FiveConfigs(), 5), 1, 1e-12);
  EXPECT_NEAR(RandomExpectedFraction(FiveConfigs(), 50), 1, 1e-12);
}

TEST(ScoreTest, ClosedFormsAgreeWithSimulation) {
  const Recording recording = FiveConfigs();
  Rng rng(1);
  const int runs = 40000, budget = 3;
  double fraction = 0, ev5 = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<int> order = {0, 1, 2, 3, 4};
    rng.Shuffle(order);
    double best = 0;
    int first = budget;
    for (int i = 0; i < budget; ++i) {
      const RecordedConfig& config = recording.configs[order[i]];
      if (config.outcome != proto::OK) continue;
      best = std::max(best, 1 / config.time_ms);
      if (WithinFivePercent(config.time_ms, 1) && first == budget) {
        first = i + 1;
      }
    }
    fraction += best / runs;
    ev5 += static_cast<double>(first) / runs;
  }
  EXPECT_NEAR(RandomExpectedFraction(recording, budget), fraction, 0.005);
  EXPECT_NEAR(RandomExpectedEv5(recording, budget), ev5, 0.02);
}

TEST(ScoreTest, HypervolumeOfAFrontIsTheAreaItDominates) {
  const double e = std::exp(1.0);
  // In logarithms: (0, 1) and (1, 0) before a reference at (2, 2).
  EXPECT_NEAR(LogHypervolume({{1, e}, {e, 1}}, {e * e, e * e}), 3, 1e-9);
  // A dominated point and one beyond the reference add nothing.
  EXPECT_NEAR(
      LogHypervolume({{1, e}, {e, 1}, {e, e}, {1e9, 0.1}}, {e * e, e * e}), 3,
      1e-9);
  EXPECT_EQ(LogHypervolume({}, {1, 1}), 0);
}

}  // namespace
}  // namespace optrail::tuning
