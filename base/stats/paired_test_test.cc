#include "base/stats/paired_test.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

const std::vector<double> kVariances = PairedTestOptions().variances;

std::vector<double> Draw(double mean, double spread, int n, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(n);
  for (double& value : values) value = mean + spread * rng.Gaussian();
  return values;
}

// The mixture by its definition: the marginal likelihood of the data, with the
// spread integrated out by the prior 1/sigma and the effect by N(0, g sigma^2),
// over the one with no effect; by brute force.
double LogBayesFactorByIntegration(const std::vector<double>& x, double g) {
  const int n = static_cast<int>(x.size());
  const double mean = Mean(x);
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  double with = 0, without = 0;
  constexpr int kSteps = 4000;
  for (int i = 0; i < kSteps; ++i) {
    const double log_sigma = -9 + 14. * (i + .5) / kSteps;
    const double sigma = std::exp(log_sigma);
    const double base = -n * log_sigma - squares / (2 * sigma * sigma);
    without += std::exp(base - n * mean * mean / (2 * sigma * sigma));
    // The mean of n values is N(0, sigma^2 (g + 1/n)) under the prior.
    const double variance = sigma * sigma * (g + 1. / n);
    with += std::exp(base - mean * mean / (2 * variance)) *
            std::sqrt(sigma * sigma / n / variance);
  }
  return std::log(with / without);
}

TEST(LogMixtureTest, IsTheMeanOfTheBayesFactorsOfItsPriors) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<double> x = Draw(.8, 1, 6, seed);
    const double t = Mean(x) / StandardDeviation(x) * std::sqrt(6);
    double sum = 0;
    for (const double g : kVariances) {
      sum += std::exp(LogBayesFactorByIntegration(x, g)) / 4;
    }
    EXPECT_NEAR(LogMixture(t, 6, kVariances), std::log(sum), 1e-3)
        << "seed " << seed;
  }
}

TEST(LogMixtureTest, GrowsWithTAndIsSymmetric) {
  for (const int n : {2, 5, 40}) {
    EXPECT_LT(LogMixture(0, n, kVariances), 0);
    EXPECT_DOUBLE_EQ(LogMixture(-2, n, kVariances),
                     LogMixture(2, n, kVariances));
    for (double t = 0; t < 50; t += .5) {
      EXPECT_LT(LogMixture(t, n, kVariances),
                LogMixture(t + .5, n, kVariances));
    }
  }
}

TEST(CriticalTTest, IsWhereTheMixtureReachesTheThreshold) {
  for (const int n : {5, 10, 100}) {
    for (const double alpha : {.1, .02, .0002}) {
      const double t = CriticalT(n, alpha, kVariances);
      EXPECT_NEAR(LogMixture(t, n, kVariances), -std::log(alpha), 1e-6);
      // Looking at any time costs something against looking once.
      EXPECT_GT(t, StudentTQuantile(1 - alpha / 2, n - 1));
    }
  }
}

TEST(CriticalTTest, IsInfiniteWhereSoFewValuesCanNeverTell) {
  EXPECT_EQ(CriticalT(2, 1e-6, kVariances),
            std::numeric_limits<double>::infinity());
}

TEST(PairedTestTest, SaysNothingBeforeTheFirstRounds) {
  PairedTestOptions options;
  EXPECT_EQ(PairedTest({}, options).verdict, PairedVerdict::kCannotTell);
  EXPECT_EQ(PairedTest({.5}, options).verdict, PairedVerdict::kCannotTell);
  EXPECT_EQ(PairedTest({.5, .5, .5, .5}, options).verdict,
            PairedVerdict::kCannotTell);
  EXPECT_EQ(PairedTest({.5, .5, .5, .5, .5}, options).verdict,
            PairedVerdict::kHigher);
}

TEST(PairedTestTest, VerdictsFollowTheInterval) {
  PairedTestOptions options;
  EXPECT_EQ(PairedTest(Draw(.1, .01, 8, 1), options).verdict,
            PairedVerdict::kHigher);
  EXPECT_EQ(PairedTest(Draw(-.1, .01, 8, 1), options).verdict,
            PairedVerdict::kLower);
  EXPECT_EQ(PairedTest(Draw(0, .005, 12, 1), options).verdict,
            PairedVerdict::kUnchanged);
  EXPECT_EQ(PairedTest(Draw(0, .2, 12, 1), options).verdict,
            PairedVerdict::kCannotTell);
}

TEST(PairedTestTest, AChangeSurelyThereButBelowTheEffectIsNoChange) {
  const PairedEvidence evidence = PairedTest(Draw(.01, .001, 12, 1), {});
  EXPECT_GT(evidence.low, 0);
  EXPECT_EQ(evidence.verdict, PairedVerdict::kUnchanged);
}

// Nothing got worse: how much better it became may stay open.
TEST(PairedTestTest, UpwardsOnlyAnImprovementKeepsNothingOpen) {
  PairedTestOptions options;
  const std::vector<double> values = Draw(-.03, .03, 12, 1);
  EXPECT_EQ(PairedTest(values, options).verdict, PairedVerdict::kCannotTell);
  options.upwards_only = true;
  EXPECT_EQ(PairedTest(values, options).verdict, PairedVerdict::kUnchanged);
  EXPECT_EQ(PairedTest(Draw(.03, .03, 12, 1), options).verdict,
            PairedVerdict::kCannotTell);
}

TEST(PairedTestTest, EqualReadingsDoNotMakeTheSpreadZero) {
  const PairedEvidence evidence =
      PairedTest(std::vector<double>(10, 0.), PairedTestOptions());
  EXPECT_EQ(evidence.verdict, PairedVerdict::kUnchanged);
  EXPECT_GT(evidence.high, evidence.low);
}

TEST(PairedTestTest, OutliersWidenTheIntervalLittleAndMoveItLess) {
  std::vector<double> values = Draw(0, .01, 20, 1);
  const PairedEvidence clean = PairedTest(values, {});
  values[3] = 2;
  values[11] = -1.5;
  const PairedEvidence dirty = PairedTest(values, {});
  EXPECT_NEAR(dirty.log_ratio, clean.log_ratio, .005);
  EXPECT_LT(dirty.spread, 2 * clean.spread);
  EXPECT_GT(dirty.spread, clean.spread);
  EXPECT_EQ(dirty.verdict, PairedVerdict::kUnchanged);
}

TEST(PairedTestTest, WhereMostValuesAreEqualTheOthersStillCount) {
  std::vector<double> values(12, 0.);
  for (int i = 0; i < 5; ++i) values[i] = .5;
  EXPECT_GT(PairedTest(values, {}).spread, .2);
  EXPECT_EQ(PairedTest(values, {}).verdict, PairedVerdict::kCannotTell);
}

TEST(PairedTestTest, PValueAgreesWithTheInterval) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    PairedTestOptions options;
    const PairedEvidence evidence =
        PairedTest(Draw(.02, .02, 10, seed), options);
    EXPECT_EQ(evidence.low > 0 || evidence.high < 0,
              evidence.p_value < 2 * options.false_alarm_rate)
        << "seed " << seed;
  }
}

TEST(PredictRoundsTest, IsWhereTheVerdictComesWhenNothingChanges) {
  PairedTestOptions options;
  const PairedEvidence open = PairedTest(Draw(.05, .04, 6, 3), options);
  ASSERT_EQ(open.verdict, PairedVerdict::kCannotTell);
  const int rounds = PredictRounds(open, options, 500);
  EXPECT_GT(rounds, 6);
  EXPECT_LT(rounds, 500);
  EXPECT_EQ(PredictRounds(open, options, 8), 8);
  const PairedEvidence clear = PairedTest(Draw(.3, .01, 6, 3), options);
  EXPECT_EQ(PredictRounds(clear, options, 500), 6);
}

}  // namespace
}  // namespace optrail
