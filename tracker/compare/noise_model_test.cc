#include "tracker/compare/noise_model.h"

#include <cmath>
#include <functional>

#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "gtest/gtest.h"
#include "tracker/compare/robust.h"
#include "tracker/compare/shared_factor.h"
#include "tracker/compare/steps.h"

namespace optrail::tracker {
namespace {

// Of medians, where the caches of a core say one thing and memory another.
MachineState State(double clock, double core, double memory) {
  MachineState state;
  state.values = {clock, core, core, memory, memory, 0};
  return state;
}

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
          process.machine =
              State(drift_ + frequency_drop + .002 * rng_.Gaussian(),
                    .002 * rng_.Gaussian(),
                    .2 * (drift_ + frequency_drop) + .005 * rng_.Gaussian());
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

TEST(NoiseModel, WhatAllShareIsNotTheMachineBeyondWhatItEverDid) {
  Machine machine(8);
  const auto runs = machine.Runs(25);
  const PanelEstimate estimate =
      Estimate(runs, machine.Run([](int) { return std::log(1.5); }));
  ASSERT_TRUE(estimate.factor_spread.has_value());
  for (const BenchmarkEstimate& e : estimate.benchmarks) {
    EXPECT_GT(e.log_ratio_low, .2);
  }
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
          cell.push_back({run + .01 * rng.Gaussian(), {}, {}});
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

// A neighbour on the same core: processes beside it take 17% more, and loops in
// the caches of the core say so.
PanelRun Disturbed(Rng& rng, double share, bool calibrated, double slower = 0) {
  PanelRun run;
  for (int j = 0; j < 8; ++j) {
    std::vector<ProcessLog>& cell = run.emplace_back();
    for (int p = 0; p < 5; ++p) {
      const double neighbour = rng.UniformReal() < share ? .17 : 0;
      ProcessLog process;
      process.value = neighbour + .006 * rng.Gaussian() + (j == 3 ? slower : 0);
      if (calibrated) {
        process.machine =
            State(.003 * rng.Gaussian(), neighbour + .01 * rng.Gaussian(),
                  .05 * rng.Gaussian());
      }
      cell.push_back(process);
    }
  }
  return run;
}

TEST(NoiseModel, FastestReadingsAndMediansOfTheMachineDoNotCompare) {
  Rng rng(21);
  std::vector<PanelRun> runs;
  for (int r = 0; r < 20; ++r) runs.push_back(Disturbed(rng, .2, true));
  // A neighbour beside all processes of one benchmark, which loops tell.
  PanelRun candidate = Disturbed(rng, 0, true);
  for (ProcessLog& process : candidate[3]) {
    process.value += .17;
    process.machine->values[MachineState::kL1] += .17;
    process.machine->values[MachineState::kL2] += .17;
  }
  EXPECT_LT(Estimate(runs, candidate).benchmarks[3].log_ratio, .05);
  for (std::vector<ProcessLog>& cell : candidate) {
    for (ProcessLog& process : cell) process.machine->fastest = true;
  }
  EXPECT_GT(Estimate(runs, candidate).benchmarks[3].log_ratio, .12);
}

TEST(NoiseModel, NeighboursOfMostProcessesHideNothing) {
  for (const bool calibrated : {false, true}) {
    Rng rng(17);
    std::vector<double> changes;
    int found = 0, gates = 0;
    for (int i = 0; i < 40; ++i) {
      std::vector<PanelRun> runs;
      for (int r = 0; r < 15; ++r)
        runs.push_back(Disturbed(rng, .5, calibrated));
      const PanelEstimate same = Estimate(runs, Disturbed(rng, .5, calibrated));
      for (const BenchmarkEstimate& e : same.benchmarks) {
        changes.push_back(e.log_ratio / e.standard_error);
      }
      const BenchmarkEstimate slow =
          Estimate(runs, Disturbed(rng, .5, calibrated, std::log(1.1)))
              .benchmarks[3];
      found += slow.log_ratio > 3.5 * slow.standard_error;
      ++gates;
    }
    // Medians of five such processes vary by 7% and find nothing.
    EXPECT_GE(found, (calibrated ? .85 : .35) * gates) << calibrated;
    // One run in 32 has no undisturbed process, which only loops can tell.
    int wild = 0;
    for (const double score : changes) wild += score > 3.5;
    EXPECT_LE(wild,
              (calibrated ? .01 : .05) * static_cast<double>(changes.size()))
        << calibrated;
  }
}

TEST(NoiseModel, ARunThatIsDisturbedThroughoutIsUnsure) {
  Rng rng(18);
  std::vector<PanelRun> runs;
  for (int r = 0; r < 15; ++r) runs.push_back(Disturbed(rng, .5, true));
  const BenchmarkEstimate calm =
      Estimate(runs, Disturbed(rng, 0, true)).benchmarks[3];
  const BenchmarkEstimate disturbed =
      Estimate(runs, Disturbed(rng, 1, true)).benchmarks[3];
  EXPECT_GT(disturbed.standard_error, 2 * calm.standard_error);
  EXPECT_LT(disturbed.log_ratio, 3 * disturbed.standard_error);
}

TEST(NoiseModel, WhatACandidateLacksLeavesTheOthersAlone) {
  Rng rng(21);
  std::vector<PanelRun> runs;
  for (int r = 0; r < 15; ++r) runs.push_back(Disturbed(rng, .3, true));
  runs[4][2].clear();
  PanelRun candidate = Disturbed(rng, .3, true);
  candidate[5].clear();
  const PanelEstimate estimate = Estimate(runs, candidate);
  EXPECT_FALSE(estimate.benchmarks[5].possible);
  EXPECT_TRUE(estimate.benchmarks[2].possible);
  for (const BenchmarkEstimate& e : estimate.benchmarks) {
    EXPECT_TRUE(std::isfinite(e.log_ratio) && std::isfinite(e.standard_error));
  }

  EXPECT_GT(estimate.factor_spread.value_or(0), 0);
}

TEST(NoiseModel, SlowRunsAreExpectedWhereThereWereSome) {
  Rng rng(19);
  std::vector<PanelRun> runs;
  for (int r = 0; r < 24; ++r) {
    runs.push_back(Disturbed(rng, .1, false));
    if (r % 6 != 3) continue;
    for (ProcessLog& process : runs.back()[3]) process.value += .08;
  }
  const SlowValues often =
      Estimate(runs, Disturbed(rng, .1, false)).benchmarks[3].slow_runs;
  std::vector<PanelRun> calm;
  for (int r = 0; r < 24; ++r) calm.push_back(Disturbed(rng, .1, false));
  const SlowValues never =
      Estimate(calm, Disturbed(rng, .1, false)).benchmarks[3].slow_runs;
  EXPECT_GT(often.Tail(.05), 10 * never.Tail(.05));
  // Several runs that are all bad are less likely than one.
  EXPECT_LT(SlowRunsTail(often, 3, .05), .5 * SlowRunsTail(often, 1, .05));
}

// Its code may have been slow for a while; the others' was not.
TEST(NoiseModel, TheBurstOfOneBenchmarkTakesNoPowerFromOthers) {
  const auto after = [](bool burst) {
    Rng rng(20);
    std::vector<PanelRun> runs;
    for (int r = 0; r < 40; ++r) {
      runs.push_back(Disturbed(rng, .1, false));
      if (!burst || r < 17 || r > 20) continue;
      for (ProcessLog& process : runs.back()[3]) process.value += .26;
    }
    return Estimate(runs, Disturbed(rng, .1, false)).benchmarks;
  };
  const std::vector<BenchmarkEstimate> calm = after(false), burst = after(true);
  for (size_t j = 0; j < calm.size(); ++j) {
    const double before = calm[j].slow_runs.Tail(.1);
    if (j == 3) {
      EXPECT_GT(burst[j].slow_runs.Tail(.1), 10 * before);
    } else {
      EXPECT_LT(burst[j].slow_runs.Tail(.1), 1.5 * before) << j;
    }
  }
}

TEST(LowerLevel, IsTheMeanOfWhatNothingDisturbed) {
  const std::vector<double> variances(5, 1e-4);
  const SlowValues slow = {.4, .1};
  const LowerLevel found =
      FindLowerLevel({.005, -.005, .17, .16, .3}, variances, slow);
  EXPECT_NEAR(found.level, 0, .002);
  EXPECT_GT(found.undisturbed[0], .7);
  EXPECT_LT(found.undisturbed[2], .01);
  // Where nothing disturbs, the level is a mean.
  EXPECT_NEAR(
      FindLowerLevel({.01, -.01, .004, 0, -.004}, variances, slow).level, 0,
      .003);
  EXPECT_TRUE(std::isnan(FindLowerLevel({}, {}, slow).level));
}

TEST(LowerLevel, OneWildLowValueIsNoLevel) {
  const std::vector<double> variances(8, 1e-4);
  const LowerLevel found = FindLowerLevel(
      {-.9, .001, .002, -.003, .004, 0, -.002, .003}, variances, {.05, .1});
  EXPECT_NEAR(found.level, 0, .005);
}

TEST(FitSlowValues, LearnsNoiseSharesAndExcess) {
  Rng rng(20);
  std::vector<ValueGroup> groups(200);
  for (ValueGroup& group : groups) {
    const double level = rng.Gaussian();
    for (int i = 0; i < 5; ++i) {
      const bool slow = rng.UniformReal() < .3;
      group.values.push_back(level + .01 * rng.Gaussian() -
                             (slow ? .1 * std::log(1 - rng.UniformReal()) : 0));
      group.extra_variances.push_back(0);
    }
  }
  SlowValuesPrior prior;
  prior.variance = .05 * .05;
  prior.slow = {.1, .3};
  const SlowValuesFit fit = FitSlowValues(groups, prior, 1e-8);
  EXPECT_NEAR(std::sqrt(fit.variance), .01, .0025);
  EXPECT_NEAR(fit.slow.share, .3, .1);
  EXPECT_NEAR(fit.slow.excess, .1, .03);
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
