#include "tracker/compare/noise_model.h"

#include <cmath>
#include <functional>

#include "base/distributions.h"
#include "base/random.h"
#include "base/statistics.h"
#include "gtest/gtest.h"
#include "tracker/compare/robust.h"
#include "tracker/compare/shared_factor.h"
#include "tracker/compare/steps.h"

namespace optrail::tracker {
namespace {

// A machine like one that was recorded: benchmarks bound by the core share a
// drift of 3%, those bound by memory do not.
class Machine {
 public:
  static constexpr int kBenchmarks = 8, kCompute = 6, kProcesses = 5;

  explicit Machine(uint64_t seed) : rng_(seed) {}

  // `slower` times what each benchmark takes, in logarithms.
  PanelRun Run(const std::function<double(int)>& slower = nullptr,
               double frequency_drop = 0) {
    drift_ = .8 * drift_ + .6 * .03 * rng_.Gaussian();
    PanelRun run;
    for (int j = 0; j < kBenchmarks; ++j) {
      const bool compute = j < kCompute;
      const double level = (compute ? drift_ + frequency_drop : 0) +
                           (compute ? .008 : .002) * rng_.Gaussian() +
                           (slower == nullptr ? 0 : slower(j));
      std::vector<ProcessLog>& cell = run.emplace_back();
      for (int p = 0; p < kProcesses; ++p) {
        ProcessLog process;
        process.value = level + (compute ? .016 : .003) * rng_.Gaussian();
        if (calibrated_) {
          process.machine = MachineState{
              drift_ + frequency_drop + .002 * rng_.Gaussian(),
              .2 * (drift_ + frequency_drop) + .005 * rng_.Gaussian()};
        }
        cell.push_back(process);
      }
    }
    return run;
  }

  std::vector<PanelRun> Runs(int count) {
    std::vector<PanelRun> runs;
    for (int i = 0; i < count; ++i) runs.push_back(Run());
    return runs;
  }

  void Calibrate() { calibrated_ = true; }

 private:
  Rng rng_;
  double drift_ = 0;
  bool calibrated_ = false;
};

PanelEstimate Estimate(const std::vector<PanelRun>& runs,
                       const PanelRun& candidate, int window = 10) {
  Panel panel;
  panel.runs = runs;
  const int n = static_cast<int>(runs.size());
  for (int r = std::max(0, n - window); r < n; ++r) panel.baseline.push_back(r);
  panel.candidate = {candidate};
  panel.window = true;
  return EstimateChanges(panel);
}

std::function<double(int)> Slower(int which, double factor) {
  return [=](int j) { return j == which ? std::log(factor) : 0; };
}

TEST(NoiseModel, TakesTheMachineOutAndKnowsItsError) {
  std::vector<double> scores, changes;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Machine machine(seed);
    const auto runs = machine.Runs(16);
    const PanelEstimate estimate = Estimate(runs, machine.Run());
    for (int j = 0; j < Machine::kCompute; ++j) {
      const BenchmarkEstimate& e = estimate.benchmarks[j];
      ASSERT_TRUE(e.possible);
      scores.push_back(NormalQuantile(
          StudentTCdf(e.log_ratio / e.standard_error, e.degrees_of_freedom)));
      changes.push_back(e.log_ratio);
    }
  }
  // The drift alone is 3%; what is left of it and the rest is half of that.
  EXPECT_LT(StandardDeviation(changes), .016);
  EXPECT_NEAR(StandardDeviation(scores), 1, .12);
  EXPECT_NEAR(Mean(scores), 0, .15);
}

TEST(NoiseModel, ABenchmarksOwnChangeIsNotTakenOutWithTheMachine) {
  Machine machine(7);
  const auto runs = machine.Runs(20);
  const PanelEstimate estimate = Estimate(runs, machine.Run(Slower(2, 1.2)));
  EXPECT_NEAR(estimate.benchmarks[2].log_ratio, std::log(1.2), .05);
  EXPECT_LT(std::abs(estimate.benchmarks[1].log_ratio), .05);
}

TEST(NoiseModel, WhatAllShareIsOneEstimate) {
  Machine machine(8);
  const auto runs = machine.Runs(25);
  const PanelEstimate estimate =
      Estimate(runs, machine.Run([](int) { return std::log(1.5); }));
  ASSERT_TRUE(estimate.shared.exists);
  EXPECT_GT(estimate.shared.log_change, .2);
  EXPECT_GT(estimate.shared.log_change / estimate.shared.standard_error, 5);
}

TEST(NoiseModel, CalibrationExplainsADropOfTheFrequency) {
  Machine machine(9);
  machine.Calibrate();
  const auto runs = machine.Runs(20);
  const PanelEstimate estimate =
      Estimate(runs, machine.Run(nullptr, std::log(1.1)));
  for (int j = 0; j < Machine::kCompute; ++j) {
    const BenchmarkEstimate& e = estimate.benchmarks[j];
    EXPECT_LT(std::abs(e.log_ratio), 3.5 * e.standard_error) << j;
    EXPECT_GT(e.log_machine, .02);
  }
  EXPECT_LT(estimate.shared.log_change, 3 * estimate.shared.standard_error);
}

TEST(NoiseModel, OneBadRunNeitherMovesNorBlinds) {
  for (const bool all : {false, true}) {
    Machine machine(10);
    auto runs = machine.Runs(15);
    const double error =
        Estimate(runs, machine.Run()).benchmarks[3].standard_error;
    runs.push_back(machine.Run(
        [all](int j) { return all || j == 3 ? std::log(1.5) : 0; }));
    const PanelEstimate after = Estimate(runs, machine.Run());
    EXPECT_LT(after.benchmarks[3].standard_error, 1.3 * error) << all;
    EXPECT_LT(std::abs(after.benchmarks[3].log_ratio),
              3.5 * after.benchmarks[3].standard_error)
        << all;
    if (!all) {
      ASSERT_FALSE(after.benchmarks[3].far_off.empty());
      EXPECT_EQ(after.benchmarks[3].far_off.back(), 15);
    }
  }
}

TEST(NoiseModel, AWindowBeginsAnewWhereABenchmarkImproved) {
  Machine machine(11);
  auto runs = machine.Runs(15);
  for (int i = 0; i < 4; ++i) runs.push_back(machine.Run(Slower(3, .9)));
  const PanelEstimate estimate = Estimate(runs, machine.Run(Slower(3, .9)));
  EXPECT_GE(estimate.benchmarks[3].first_baseline_run, 14);
  EXPECT_LT(std::abs(estimate.benchmarks[3].log_ratio), .05);
  EXPECT_LT(estimate.benchmarks[4].first_baseline_run, 14);
}

TEST(NoiseModel, ARegressionDoesNotBecomeTheNormByItself) {
  Machine machine(12);
  auto runs = machine.Runs(15);
  for (int i = 0; i < 4; ++i) runs.push_back(machine.Run(Slower(3, 1.15)));
  const PanelRun candidate = machine.Run(Slower(3, 1.15));
  EXPECT_GT(Estimate(runs, candidate).benchmarks[3].log_ratio, .09);
  // But it does where somebody says so.
  Panel panel;
  panel.runs = runs;
  for (int r = 9; r < 19; ++r) panel.baseline.push_back(r);
  panel.level_starts.assign(Machine::kBenchmarks, 0);
  panel.level_starts[3] = 15;
  panel.candidate = {candidate};
  panel.window = true;
  const PanelEstimate answered = EstimateChanges(panel);
  EXPECT_LT(std::abs(answered.benchmarks[3].log_ratio), .05);
  EXPECT_EQ(answered.benchmarks[3].baseline_runs, 4);
}

TEST(NoiseModel, OneRunASideCarriesTheVarianceBetweenRuns) {
  Rng rng(13);
  std::vector<double> scores;
  for (int i = 0; i < 300; ++i) {
    Panel panel;
    PanelRun sides[2];
    for (PanelRun& side : sides) {
      for (int j = 0; j < 2; ++j) {
        std::vector<ProcessLog>& cell = side.emplace_back();
        const double run = .005 * rng.Gaussian();
        for (int p = 0; p < 5; ++p) {
          cell.push_back({run + .01 * rng.Gaussian(), absl::nullopt});
        }
      }
    }
    panel.runs = {sides[0]};
    panel.baseline = {0};
    panel.candidate = {sides[1]};
    const BenchmarkEstimate e = EstimateChanges(panel).benchmarks[0];
    ASSERT_TRUE(e.possible);
    scores.push_back(NormalQuantile(
        StudentTCdf(e.log_ratio / e.standard_error, e.degrees_of_freedom)));
  }
  EXPECT_LT(StandardDeviation(scores), 1.1);
}

TEST(HuberLocation, IsTheMeanOfWhatAgreesAndHardlyMovedByTheRest) {
  EXPECT_DOUBLE_EQ(HuberLocation({1, 2, 3}, 1), 2);
  EXPECT_LT(HuberLocation({0, .1, -.1, .05, 100}, .1), .1);
  EXPECT_TRUE(std::isnan(HuberLocation({}, 1)));
}

TEST(WinsorisedVariance, IsConsistentAndRobust) {
  Rng rng(14);
  std::vector<double> deviations;
  for (int i = 0; i < 20000; ++i) deviations.push_back(2 * rng.Gaussian());
  EXPECT_NEAR(WinsorisedVariance(deviations), 4, .15);
  for (int i = 0; i < 1000; ++i) deviations[i] *= 100;
  EXPECT_LT(WinsorisedVariance(deviations), 6);
}

TEST(FindLevelSteps, FindsAStepAndNoWildValue) {
  std::vector<double> values;
  Rng rng(15);
  for (int i = 0; i < 20; ++i) values.push_back(.01 * rng.Gaussian());
  EXPECT_EQ(FindLevelSteps(values, .01), std::vector<int>({0}));
  values[12] += .5;
  EXPECT_EQ(FindLevelSteps(values, .01), std::vector<int>({0}));
  values[12] -= .5;
  for (int i = 14; i < 20; ++i) values[i] += .1;
  EXPECT_EQ(FindLevelSteps(values, .01), std::vector<int>({0, 14}));
}

TEST(FindLevelSteps, RarelyFindsOneByChance) {
  Rng rng(16);
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> values;
    for (int k = 0; k < 30; ++k) values.push_back(.01 * rng.Gaussian());
    found += FindLevelSteps(values, .01).size() > 1;
  }
  EXPECT_LE(found, 20);
}

TEST(SharedFactor, NeedsRunsAndBenchmarks) {
  EXPECT_FALSE(SharedFactor::Fit({}, .001).exists());
  const Deviations three(3, std::vector<double>(8, .01));
  EXPECT_FALSE(SharedFactor::Fit(three, .001).exists());
  const Deviations two(20, std::vector<double>(2, .01));
  EXPECT_FALSE(SharedFactor::Fit(two, .001).exists());
}

}  // namespace
}  // namespace optrail::tracker
