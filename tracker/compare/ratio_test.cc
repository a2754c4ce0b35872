#include "tracker/compare/ratio.h"

#include <cmath>

#include "base/random.h"
#include "base/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

std::vector<double> Exp(std::vector<double> logs) {
  for (double& x : logs) x = std::exp(x);
  return logs;
}

// Lognormal processes around exp(level).
std::vector<double> Processes(int n, double level, double spread, Rng& rng) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(std::exp(level + spread * rng.Gaussian()));
  }
  return values;
}

// R: t.test(y, x, var.equal = TRUE) on the logarithms, whose difference .2 and
// pooled variance .025 over 8 degrees of freedom are plain arithmetic.
TEST(CompareProcesses, IsTheTTestOfLogsForTwoEqualRuns) {
  const ProcessGroups x = {Exp({0, .1, .2, .3, .4})};
  const ProcessGroups y = {Exp({.2, .3, .4, .5, .6})};
  const auto ratio = CompareProcesses(x, y, {});
  ASSERT_TRUE(ratio.ok()) << ratio.status();
  EXPECT_NEAR(ratio->ratio, std::exp(.2), 1e-12);
  EXPECT_NEAR(ratio->standard_error, .1, 1e-12);
  EXPECT_NEAR(ratio->degrees_of_freedom, 8, 1e-9);
  EXPECT_NEAR(ratio->p_two_sided, 0.0805161, 1e-6);  // 2 P(t_8 > 2)
  EXPECT_NEAR(ratio->p_greater, 0.0805161 / 2, 1e-6);
  EXPECT_NEAR(std::log(ratio->high), .2 + 2.306004 * .1, 1e-6);
  EXPECT_NEAR(ratio->process_spread, std::sqrt(.025), 1e-12);
  EXPECT_EQ(ratio->baseline_processes, 5);
  EXPECT_NEAR(ratio->baseline, std::exp(.2), 1e-12);
}

// Student's sleep data (Biometrika 6, 1908), as R's manual prints
// t.test(extra ~ group, data = sleep, var.equal = TRUE): t = 1.8608 on 18
// degrees of freedom, p = 0.07919, interval -0.203874 to 3.363874.
TEST(CompareProcesses, AgreesWithStudentsSleepData) {
  const ProcessGroups x = {
      Exp({0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0})};
  const ProcessGroups y = {
      Exp({1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4})};
  const auto ratio = CompareProcesses(x, y, {});
  ASSERT_TRUE(ratio.ok()) << ratio.status();
  EXPECT_NEAR(ratio->log_ratio, 1.58, 1e-9);
  EXPECT_NEAR(ratio->log_ratio / ratio->standard_error, 1.8608, 5e-5);
  EXPECT_NEAR(ratio->degrees_of_freedom, 18, 1e-9);
  EXPECT_NEAR(ratio->p_two_sided, 0.07919, 5e-6);
  EXPECT_NEAR(std::log(ratio->low), -0.203874, 5e-7);
  EXPECT_NEAR(std::log(ratio->high), 3.363874, 5e-7);
}

TEST(CompareProcesses, DoesNotBelieveFewQuietProcesses) {
  // Welch alone would trust the three candidates that agree by chance.
  const ProcessGroups x = {{1, 1.4, 1, 1.4, 1.4, 1, 1, 1.4, 1, 1.4, 1, 1.4}};
  const ProcessGroups y = {{1.4, 1.4001, 1.3999}};
  const auto ratio = CompareProcesses(x, y, {});
  ASSERT_TRUE(ratio.ok());
  EXPECT_GT(ratio->p_greater, .01);
}

TEST(CompareProcesses, WidensWhenTheSmallSideIsTheNoisyOne) {
  const ProcessGroups x = {{1, 1.01, .99, 1.01, .99, 1, 1.01, .99, 1, 1.01}};
  const ProcessGroups y = {{.8, 1.2, 1.1, .9}};
  const auto ratio = CompareProcesses(x, y, {});
  ASSERT_TRUE(ratio.ok());
  EXPECT_LT(ratio->degrees_of_freedom, 4);  // Welch's
}

TEST(CompareProcesses, RunsThatDifferWeighMoreThanTheirProcesses) {
  // Each baseline run is quiet, but runs differ by several percent.
  const ProcessGroups x = {
      {1.00, 1.001, .999}, {1.05, 1.051, 1.049}, {.96, .961, .959},
      {1.03, 1.031, 1.03}, {.98, .981, .979},
  };
  const ProcessGroups y = {{1.06, 1.061, 1.059}};
  const auto ratio = CompareProcesses(x, y, {});
  ASSERT_TRUE(ratio.ok());
  EXPECT_GT(ratio->run_spread, .02);
  EXPECT_GT(ratio->p_greater, .05);
  EXPECT_LT(ratio->degrees_of_freedom, 5);
}

TEST(CompareProcesses, KnowsItCannotKnow) {
  EXPECT_EQ(CompareProcesses({{1}}, {{1.1}}, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CompareProcesses({{1, 2}}, {{}}, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  for (const double bad : {0., -1., std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(CompareProcesses({{1, bad}}, {{1, 1}}, {}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(CompareProcesses, APriorHelpsFewProcessesUnlessTodayIsNoisier) {
  const ProcessGroups x = {{1, 1.01, .99}}, y = {{1.05, 1.06, 1.04}};
  RatioOptions options;
  const double alone = CompareProcesses(x, y, options)->p_greater;
  options.prior = SpreadPrior{.01 * .01, 40};
  EXPECT_LT(CompareProcesses(x, y, options)->p_greater, alone / 5);
  options.prior = SpreadPrior{.001 * .001, 40};  // it was quieter then
  EXPECT_EQ(CompareProcesses(x, y, options)->p_greater, alone);
}

TEST(CompareProcesses, IdenticalReadingsAreNoInfiniteEvidence) {
  const auto same = CompareProcesses({{5, 5, 5}}, {{5, 5, 5}}, {});
  ASSERT_TRUE(same.ok());
  EXPECT_NEAR(same->p_greater, .5, 1e-9);
  const auto nearly =
      CompareProcesses({{5, 5, 5}}, {{5.0001, 5.0001, 5.0001}}, {});
  EXPECT_GT(nearly->p_greater, .1);
}

// p-values of identical code are uniform for normal noise and err on the safe
// side for heavier tails.
TEST(CompareProcesses, KeepsItsErrorRate) {
  constexpr int kTrials = 10000;
  for (const bool heavy : {false, true}) {
    Rng rng(20261120);
    const auto noise = [&] {
      const double x = rng.Gaussian();
      return heavy && rng.UniformReal() < .1 ? 8 * x : x;
    };
    int at_5_percent = 0, at_1_permille = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      ProcessGroups x(1), y(1);
      for (int i = 0; i < 6; ++i) {
        x[0].push_back(std::exp(.02 * noise()));
        y[0].push_back(std::exp(.02 * noise()));
      }
      const double p = CompareProcesses(x, y, {})->p_greater;
      at_5_percent += p <= .05;
      at_1_permille += p <= .001;
    }
    EXPECT_LE(ClopperPearsonLower(at_5_percent, kTrials, .999), .05) << heavy;
    EXPECT_LE(ClopperPearsonLower(at_1_permille, kTrials, .999), .001) << heavy;
    if (!heavy) {
      EXPECT_GE(ClopperPearsonUpper(at_5_percent, kTrials, .999), .05);
    }
  }
}

// The same with runs that differ: the history's window as a baseline.
TEST(CompareProcesses, KeepsItsErrorRateWhenRunsDiffer) {
  constexpr int kTrials = 10000;
  for (const double run_spread : {0., .01, .03}) {
    Rng rng(7);
    int found = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      ProcessGroups x, y;
      for (int run = 0; run < 10; ++run) {
        x.push_back(Processes(3, run_spread * rng.Gaussian(), .01, rng));
      }
      y.push_back(Processes(3, run_spread * rng.Gaussian(), .01, rng));
      found += CompareProcesses(x, y, {})->p_greater <= .001;
    }
    EXPECT_LE(found / double{kTrials}, .002) << run_spread;
    RecordProperty(std::to_string(run_spread), found);
  }
}

TEST(MinimumDetectableEffect, IsFoundWithTheStatedPower) {
  constexpr double kAlpha = 1e-3, kPower = .95, kSpread = .01;
  constexpr int kProcesses = 10, kTrials = 4000;
  const double effect =
      MinimumDetectableEffect(kSpread * std::sqrt(2.0 / kProcesses),
                              2 * kProcesses - 2, kAlpha, kPower, .005);
  EXPECT_NEAR(effect, .0248, .001);
  Rng rng(3);
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto ratio = CompareProcesses(
        {Processes(kProcesses, 0, kSpread, rng)},
        {Processes(kProcesses, std::log1p(effect), kSpread, rng)}, {});
    found += ratio->p_greater <= kAlpha && ratio->ratio >= 1.005;
  }
  EXPECT_GE(ClopperPearsonUpper(found, kTrials, .99), kPower);
}

TEST(MinimumDetectableEffect, NeverLiesBelowTheEffectThatCounts) {
  EXPECT_GT(MinimumDetectableEffect(1e-6, 100, .01, .95, .03), .03);
}

TEST(ProcessesNeeded, IsTheFewestThatSuffice) {
  constexpr double kSpread = .02, kEffect = .05, kAlpha = 1e-4;
  const auto effect_at = [&](int n) {
    return MinimumDetectableEffect(kSpread * std::sqrt(2.0 / n), 2 * n - 2,
                                   kAlpha, .95, .03);
  };
  const auto n = ProcessesNeeded(kSpread, kEffect, .03, kAlpha, .95, 1000);
  ASSERT_TRUE(n.has_value());
  EXPECT_LE(effect_at(*n), kEffect);
  EXPECT_GT(effect_at(*n - 1), kEffect);
}

// R's manual: power.t.test(power = .90, delta = 1, alternative = "one.sided")
// needs n = 17.84713, and with two sides (alpha / 2 each) n = 22.02110.
TEST(ProcessesNeeded, AgreesWithPowerTTest) {
  constexpr double kSpread = .01;
  const double effect = std::expm1(kSpread);
  EXPECT_EQ(ProcessesNeeded(kSpread, effect, 0, .05, .9, 100), 18);
  EXPECT_EQ(ProcessesNeeded(kSpread, effect, 0, .025, .9, 100), 23);
}

TEST(ProcessesNeeded, GrowsWithNoiseAndGivesUpHonestly) {
  const auto quiet = ProcessesNeeded(.005, .05, .03, 1e-4, .95, 1000);
  const auto noisy = ProcessesNeeded(.05, .05, .03, 1e-4, .95, 1000);
  ASSERT_TRUE(quiet.has_value());
  ASSERT_TRUE(noisy.has_value());
  EXPECT_LT(*quiet, 10);
  EXPECT_GT(*noisy, 50);
  EXPECT_FALSE(ProcessesNeeded(.5, .05, .03, 1e-4, .95, 200).has_value());
  EXPECT_FALSE(ProcessesNeeded(.01, .03, .03, 1e-4, .95, 200).has_value());
}

TEST(EstimateSpread, PoolsWithinRunsOnly) {
  const SpreadPrior prior =
      EstimateSpread({Exp({0, .02}), Exp({5, 5.02}), Exp({3})});
  EXPECT_NEAR(prior.process_variance, .0002, 1e-12);
  EXPECT_EQ(prior.degrees_of_freedom, 2);
  EXPECT_EQ(EstimateSpread({{1}}).degrees_of_freedom, 0);
}

}  // namespace
}  // namespace optrail::tracker
