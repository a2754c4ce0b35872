#include "tracker/ab/evaluation/simulation.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

// Looks after every round, 150 of them, without the shelter of an early
// "unchanged" or a minimum effect: the rate must hold over all looks together.
TEST(SequentialErrorRateTest, HoldsOverAllLooks) {
  for (const Noise noise : {Noise::kNormal, Noise::kOutliers, Noise::kSkewed}) {
    SimulationOptions options;
    options.noise = noise;
    options.comparisons = 1000;
    options.max_rounds = 150;
    options.test.false_alarm_rate = .02;
    options.test.min_effect = 0;
    options.test.detect_effect = 0;  // never "unchanged"
    const SimulationResult result = Simulate(options);
    // 0.02 would exceed 34 of 1000 with a probability below 0.001.
    EXPECT_LE(result.any_slower, 34) << "noise " << static_cast<int>(noise);
    EXPECT_LE(result.any_faster, 34) << "noise " << static_cast<int>(noise);
  }
}

// What the simulation above would count for a test that ignores its looks.
TEST(SequentialErrorRateTest, WouldNotHoldForARepeatedTTest) {
  Rng rng(1);
  int alarms = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> values;
    for (int round = 1; round <= 150; ++round) {
      values.push_back(rng.Gaussian());
      if (round < 5) continue;
      const double t =
          Mean(values) / StandardDeviation(values) * std::sqrt(round);
      if (1 - StudentTCdf(t, round - 1) < .02) {
        ++alarms;
        break;
      }
    }
  }
  EXPECT_GT(alarms, 100);
}

TEST(SequentialErrorRateTest, HoldsForTheWholeComparisonOfManyBenchmarks) {
  SimulationOptions options;
  options.comparisons = 300;
  options.benchmarks = 10;
  options.max_rounds = 60;
  options.test.false_alarm_rate = .05;
  options.test.min_effect = 0;
  options.test.detect_effect = 0;
  // 0.05 would exceed 28 of 300 with a probability below 0.001.
  EXPECT_LE(Simulate(options).any_slower, 28);
}

// As a gate asks: 5% worse is called unchanged with 1 - power at most, whenever
// that ends it.
TEST(SequentialErrorRateTest, AGateRarelyMissesWhatMatters) {
  for (const Noise noise : {Noise::kNormal, Noise::kOutliers, Noise::kSkewed}) {
    for (const double spread : {.02, .05}) {
      SimulationOptions options;
      options.noise = noise;
      options.spread = spread;
      options.comparisons = 150;
      options.max_rounds = 40;
      options.effect = options.test.detect_effect;
      options.test.miss_rate = .05;
      options.test.upwards_only = true;
      // 0.05 would exceed 17 of 150 with a probability below 0.001.
      EXPECT_LE(Simulate(options).unchanged, 17. / 150)
          << "noise " << static_cast<int>(noise) << ", spread " << spread;
    }
  }
}

TEST(SequentialErrorRateTest, FindsWhatIsThereWithFewRounds) {
  SimulationOptions options;
  options.comparisons = 500;
  options.effect = .05;
  options.spread = .01;
  SimulationResult result = Simulate(options);
  EXPECT_GT(result.slower, .98);
  EXPECT_LT(result.mean_rounds, 8);
  options.effect = 0;
  result = Simulate(options);
  EXPECT_GT(result.unchanged, .98);
  EXPECT_LT(result.mean_rounds, 8);
  options.effect = .05;
  options.spread = .03;
  EXPECT_GT(Simulate(options).slower, .95);
}

}  // namespace
}  // namespace optrail::tracker
