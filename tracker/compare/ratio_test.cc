#include "tracker/compare/ratio.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(RatioOf, AgreesWithStudentsSleepData) {
  // R: t.test(extra ~ group, data = sleep, var.equal = TRUE):
  // t = -1.8608, df = 18, p = 0.07919, interval -3.363874 .. 0.203874.
  const double difference = .75 - 2.33;
  const Ratio ratio = RatioOf(difference, .8490910, 18, .95);
  EXPECT_NEAR(ratio.p_two_sided, .07919, 1e-5);
  EXPECT_NEAR(std::log(ratio.low), -3.363874, 1e-5);
  EXPECT_NEAR(std::log(ratio.high), .203874, 1e-5);
  EXPECT_NEAR(ratio.p_greater + ratio.p_less, 1, 1e-12);
}

TEST(MinimumDetectableEffect, IsFoundWithTheStatedPower) {
  constexpr double kAlpha = 1e-3, kPower = .95, kSpread = .01;
  constexpr int kProcesses = 10, kTrials = 4000;
  const double effect = MinimumDetectableEffect(
      kSpread * std::sqrt(2.0 / kProcesses), 2 * kProcesses - 2,
      -StudentTQuantile(kAlpha, 2 * kProcesses - 2), kPower, .005);
  EXPECT_NEAR(effect, .0248, .001);
  Rng rng(3);
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> x, y;
    for (int i = 0; i < kProcesses; ++i) {
      x.push_back(kSpread * rng.Gaussian());
      y.push_back(std::log1p(effect) + kSpread * rng.Gaussian());
    }
    const double error = std::sqrt((Variance(x) + Variance(y)) / kProcesses);
    const Ratio ratio =
        RatioOf(Mean(y) - Mean(x), error, 2 * kProcesses - 2, .95);
    found += ratio.p_greater <= kAlpha && ratio.ratio >= 1.005;
  }
  EXPECT_GE(ClopperPearsonUpper(found, kTrials, .99), kPower);
}

TEST(MinimumDetectableEffect, NeverLiesBelowTheEffectThatCounts) {
  EXPECT_GT(MinimumDetectableEffect(1e-6, 100, 2.36, .95, .03), .03);
}

}  // namespace
}  // namespace optrail::tracker
