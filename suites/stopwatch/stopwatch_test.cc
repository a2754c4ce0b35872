#include "suites/stopwatch/stopwatch.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "ops/core/neighbours.h"

namespace optrail::suites {
namespace {

// A kernel whose calls take `true_ns` times seeded noise. Disturbances hit
// samples at random and are what the monitor reports.
class NoisyKernel : public ops::Timer, public ops::Monitor {
 public:
  NoisyKernel(double true_ns, double noise, double disturbed_share,
              uint64_t seed)
      : true_ns_(true_ns),
        noise_(noise),
        disturbed_share_(disturbed_share),
        rng_(seed) {}

  absl::Status Prepare(int64_t calls) override {
    next_calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    const int64_t calls = next_calls_;
    ++samples_;
    total_calls_ += calls;
    double ns = true_ns_ * static_cast<double>(calls) *
                std::exp(noise_ * rng_.Gaussian());
    if (first_calls_slow_ && samples_ < 5) ns *= 20;
    worked_ns_ = ns * (disturbed_ ? refill_ : 1);
    waited_ns_ = 0;
    if (disturbed_) {
      ns *= 8;
      waited_ns_ = static_cast<int64_t>(ns - worked_ns_) + waited_outside_ns_;
    }
    return static_cast<int64_t>(ns / resolution_ns_) * resolution_ns_;
  }
  absl::StatusOr<Ran> Run(int64_t calls) override {
    next_calls_ = calls;
    const absl::StatusOr<int64_t> ns = TimeNs();
    if (!ns.ok()) return ns.status();
    return Ran{calls, *ns};
  }
  int64_t max_calls() const override { return max_calls_; }
  void Begin() override { disturbed_ = rng_.UniformReal() < disturbed_share_; }
  void Fill(proto::Conditions*) override {}
  absl::optional<int64_t> WorkedNs() const override {
    if (!knows_waiting_) return absl::nullopt;
    return static_cast<int64_t>(worked_ns_) - slept_ns_;
  }
  int64_t WaitedNs() const override { return waited_ns_; }
  bool End(int64_t elapsed_ns) override {
    const bool was = disturbed_;
    disturbed_ = false;
    return was;
  }

  int64_t max_calls_ = int64_t{1} << 30;
  int64_t resolution_ns_ = 1;
  bool first_calls_slow_ = false;
  // Disturbed samples wait for a core, and what that is, is known.
  bool knows_waiting_ = false;
  double refill_ = 1;              // of caches, after having waited
  int64_t waited_outside_ns_ = 0;  // just before or after the sample
  int64_t slept_ns_ = 0;           // not waiting for a core
  int samples_ = 0;
  int64_t next_calls_ = 0;
  int64_t total_calls_ = 0;

 private:
  double true_ns_;
  double noise_;
  double disturbed_share_;
  double worked_ns_ = 0;
  int64_t waited_ns_ = 0;
  Rng rng_;
  bool disturbed_ = false;
};

TEST(StopwatchTest, BatchesShortCallsUntilASampleIsLongEnough) {
  NoisyKernel kernel(/*true_ns=*/7, /*noise=*/0.01, 0, /*seed=*/1);
  kernel.resolution_ns_ = 1000;  // far coarser than a call
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_GE(result.measurement.calls_per_sample(), 100'000 / 7 / 2);
  EXPECT_NEAR(result.time_ns, 7, 0.2);
}

TEST(StopwatchTest, StopsEarlyOnAQuietKernelAndLateOnANoisyOne) {
  NoisyKernel quiet(1e5, 0.001, 0, 2);
  NoisyKernel noisy(1e5, 0.10, 0, 2);
  const Sampling a = *TakeSamples(DefaultSamplingOptions(), quiet, quiet);
  const Sampling b = *TakeSamples(DefaultSamplingOptions(), noisy, noisy);
  EXPECT_LT(a.measurement.sample_ns_size(), 12);
  EXPECT_GT(b.measurement.sample_ns_size(), 100);
  EXPECT_NEAR(b.time_ns, 1e5, 3e3);
}

// A device whose clock falls by a fifth while half a second is measured on it.
struct FallingClock {
  double now_ns = 0;
  double Slowness() const { return 1 / (1 - .2 * std::min(1., now_ns / 5e8)); }
};

class KernelThere : public ops::Timer {
 public:
  KernelThere(double true_ns, FallingClock* clock, uint64_t seed)
      : true_ns_(true_ns), clock_(clock), rng_(seed) {}
  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    const double ns = true_ns_ * static_cast<double>(calls_) *
                      clock_->Slowness() * std::exp(.0003 * rng_.Gaussian());
    clock_->now_ns += ns;
    return static_cast<int64_t>(ns);
  }

 private:
  const double true_ns_;
  FallingClock* const clock_;
  Rng rng_;
  int64_t calls_ = 0;
};

class Quiet : public ops::Monitor {
 public:
  void Begin() override {}
  bool End(int64_t) override { return disturbed; }
  void Fill(proto::Conditions*) override {}
  bool disturbed = false;
};

TEST(StopwatchTest, WhatChangesMeanwhileIsTheSameForAllInTurns) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_sample_ns(1'000'000);
  Quiet monitor;
  double worst_in_turns = 0, worst_after_another = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const double truth = seed % 2 == 0 ? .98 : 1.1;
    FallingClock clock;
    KernelThere one(1e5, &clock, seed), other(truth * 1e5, &clock, seed + 100);
    const auto in_turns = *TakeSamples(options, {&one, &other}, monitor);
    ASSERT_EQ(in_turns.size(), 2);
    EXPECT_EQ(in_turns[0].measurement.sample_ns_size(),
              in_turns[1].measurement.sample_ns_size());
    EXPECT_GE(in_turns[0].measurement.sample_ns_size(), options.min_samples());
    worst_in_turns = std::max(
        worst_in_turns,
        std::abs(in_turns[1].time_ns / in_turns[0].time_ns / truth - 1));
    clock.now_ns = 0;
    const Sampling first = *TakeSamples(options, one, monitor);
    const Sampling second = *TakeSamples(options, other, monitor);
    worst_after_another =
        std::max(worst_after_another,
                 std::abs(second.time_ns / first.time_ns / truth - 1));
  }
  EXPECT_LT(worst_in_turns, .001);
  EXPECT_GT(worst_after_another, .003);
}

TEST(StopwatchTest, InTurnsItGoesOnForTheLeastTime) {
  FallingClock clock;
  KernelThere one(1e5, &clock, 1), other(1e5, &clock, 2);
  Quiet monitor;
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_sample_ns(1'000'000);
  const int few = TakeSamples(options, {&one, &other}, monitor)
                      ->front()
                      .measurement.sample_ns_size();
  options.set_min_time_ns(60'000'000);
  for (const Sampling& sampling :
       *TakeSamples(options, {&one, &other}, monitor)) {
    EXPECT_GT(sampling.measurement.sample_ns_size(), 40) << few;
    EXPECT_LT(sampling.measurement.sample_ns_size(), 80);
  }
  EXPECT_LT(few, 40);
}

// Beyond the power limit a millisecond in two is half as long again.
TEST(StopwatchTest, InTurnsALimitThatComesAndGoesMovesFewRatios) {
  class Limited : public KernelThere {
   public:
    Limited(double true_ns, FallingClock* clock, Rng* rng)
        : KernelThere(true_ns, clock, 1), rng_(rng) {}
    absl::StatusOr<int64_t> TimeNs() override {
      const int64_t ns = *KernelThere::TimeNs();
      return rng_->UniformInt(2) == 0 ? ns : ns * 3 / 2;
    }

   private:
    Rng* const rng_;
  };
  Rng rng(1);
  Quiet monitor;
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_sample_ns(1'000'000);
  options.set_max_time_ns(20'000'000);
  int right = 0, medians_right = 0;
  constexpr int kTimes = 100;
  for (int i = 0; i < kTimes; ++i) {
    FallingClock clock;
    Limited one(1e5, &clock, &rng), other(1.02e5, &clock, &rng);
    const auto result = *TakeSamples(options, {&one, &other}, monitor);
    std::vector<double> medians;
    for (const Sampling& sampling : result) {
      const auto& samples = sampling.measurement.sample_ns();
      medians.push_back(
          Median(std::vector<double>(samples.begin(), samples.end())) /
          static_cast<double>(sampling.measurement.calls_per_sample()));
    }
    right += std::abs(result[1].time_ns / result[0].time_ns - 1.02) < .01;
    medians_right += std::abs(medians[1] / medians[0] - 1.02) < .01;
  }
  EXPECT_GE(right, 80);
  EXPECT_LE(medians_right, 60);
}

TEST(StopwatchTest, InTurnsNothingIsConcludedWhereNoneIsLeftAlone) {
  FallingClock clock;
  KernelThere one(1e5, &clock, 1), other(1e5, &clock, 2);
  Quiet monitor;
  monitor.disturbed = true;
  const auto samplings =
      TakeSamples(DefaultSamplingOptions(), {&one, &other}, monitor);
  for (const Sampling& sampling : *samplings) {
    EXPECT_EQ(sampling.outcome, proto::CONTENDED);
    EXPECT_GT(sampling.measurement.sample_ns_size(), 0);
  }
}

// A neighbour computes during some samples, and the device tells a period late.
class TellsLate : public NoisyKernel, public ops::LateMonitor {
 public:
  TellsLate(int from_sample, int to_sample, uint64_t seed)
      : NoisyKernel(1e5, .001, 0, seed), from_(from_sample), to_(to_sample) {}
  absl::StatusOr<int64_t> TimeNs() override {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t ns, NoisyKernel::TimeNs());
    return IsDisturbed(++taken_) ? ns + ns / 50 : ns;
  }
  int CountDisturbedLate() override {
    int count = 0;
    for (int i = told_ + 1; i <= taken_; ++i) {
      if (IsDisturbed(i)) count = taken_ - i + 1;
      if (count > 0) break;
    }
    told_ = taken_;
    ++asked;
    return count;
  }
  int asked = 0;

 private:
  bool IsDisturbed(int sample) const { return sample >= from_ && sample < to_; }

  const int from_, to_;
  int taken_ = 0, told_ = 0;
};

TEST(StopwatchTest, ANeighbourThatTurnsOutToHaveComputedIsTakenOut) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(20'000'000);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    // It began and did not end, and what was before is enough; or not.
    TellsLate begins(30, 1 << 30, seed);
    const Sampling before = *TakeSamples(options, begins, begins);
    ASSERT_EQ(before.outcome, proto::OK) << seed;
    EXPECT_NEAR(before.time_ns, 1e5, 100) << seed;
    TellsLate always(1, 1 << 30, seed);
    EXPECT_EQ(TakeSamples(options, always, always)->outcome, proto::CONTENDED);

    TellsLate ends(30, 60, seed);
    const Sampling ended = *TakeSamples(options, ends, ends);
    ASSERT_EQ(ended.outcome, proto::OK) << seed;
    EXPECT_NEAR(ended.time_ns, 1e5, 100) << seed;
    EXPECT_GE(ended.measurement.contended_samples_size(), 30);
    EXPECT_EQ(ended.measurement.contended_samples_size(),
              ended.measurement.unwaited_ns_size());
    EXPECT_EQ(ended.measurement.clean_sample_count() +
                  ended.measurement.contended_samples_size(),
              ended.measurement.sample_ns_size());
  }
}

TEST(StopwatchTest, ASearchDoesNotWaitForWhatIsToldLate) {
  TellsLate kernel(1, 1000, 1);
  ASSERT_TRUE(TakeSamples(DefaultSamplingOptions(), kernel, kernel).ok());
  EXPECT_EQ(kernel.asked, 0);
}

TEST(StopwatchTest, InTurnsANeighbourThatIsToldLateIsTakenOutOfAll) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(5'000'000);
  NoisyKernel other(2e5, .001, 0, 7);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TellsLate one(30, 60, seed);
    const auto samplings = *TakeSamples(options, {&one, &other}, one);
    ASSERT_EQ(samplings[0].outcome, proto::OK);
    EXPECT_NEAR(samplings[0].time_ns, 1e5, 200) << seed;
    EXPECT_NEAR(samplings[1].time_ns, 2e5, 400) << seed;
  }
}

TEST(StopwatchTest, LeavesDisturbedSamplesOutButKeepsThem) {
  NoisyKernel kernel(1e5, 0.005, /*disturbed_share=*/0.4, 3);
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_NEAR(result.time_ns, 1e5, 1e3);
  EXPECT_GT(result.measurement.contended_samples_size(), 0);
  EXPECT_EQ(result.measurement.clean_sample_count() +
                result.measurement.contended_samples_size(),
            result.measurement.sample_ns_size());
  for (int i : result.measurement.contended_samples()) {
    EXPECT_GT(result.measurement.sample_ns(i), 4e5);
  }
}

TEST(StopwatchTest, ConcludesNothingWhenHardlyAnySampleIsClean) {
  NoisyKernel kernel(1e5, 0.005, /*disturbed_share=*/1, 4);
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::CONTENDED);
  EXPECT_FALSE(result.measurement.has_median_ns());
  EXPECT_GT(result.measurement.sample_ns_size(), 0);
}

TEST(StopwatchTest, TakesWaitingForACoreOut) {
  NoisyKernel kernel(1e7, 0.005, /*disturbed_share=*/1, 4);
  kernel.knows_waiting_ = true;
  kernel.refill_ = 1.02;
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::CONTENDED);
  EXPECT_EQ(result.time_ns, 0);
  EXPECT_EQ(SamplesThatTell(result.measurement),
            result.measurement.sample_ns_size());
  EXPECT_NEAR(result.measurement.median_ns(), 1.02e7, 1e5);
}

TEST(StopwatchTest, NeverTakesOutMoreThanTheSampleWaited) {
  NoisyKernel kernel(1e7, 0.005, /*disturbed_share=*/1, 4);
  kernel.knows_waiting_ = true;
  // The kernel says more than the sample waited ...
  kernel.waited_outside_ns_ = 5'000'000;
  EXPECT_NEAR(TakeSamples(DefaultSamplingOptions(), kernel, kernel)
                  ->measurement.median_ns(),
              1e7, 1e5);
  // ... or the sample slept for reasons of its own.
  kernel.waited_outside_ns_ = 0;
  kernel.slept_ns_ = 5'000'000;
  EXPECT_NEAR(TakeSamples(DefaultSamplingOptions(), kernel, kernel)
                  ->measurement.median_ns(),
              1e7, 1e5);
}

TEST(StopwatchTest, ShortSamplesAreCleanOrNothing) {
  NoisyKernel kernel(1e5, 0.005, /*disturbed_share=*/1, 4);
  kernel.knows_waiting_ = true;
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(SamplesThatTell(result.measurement), 0);
  EXPECT_FALSE(result.measurement.has_median_ns());
}

TEST(StopwatchTest, ShortSamplesThatAreNeverCleanBecomeLonger) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(40'000'000);
  for (const double true_ns : {1e3, 1e5, 1e6}) {
    NoisyKernel kernel(true_ns, 0.005, /*disturbed_share=*/1, 4);
    kernel.knows_waiting_ = true;
    const Sampling result = *TakeSamples(options, kernel, kernel);
    EXPECT_EQ(result.outcome, proto::CONTENDED);
    EXPECT_EQ(SamplesThatTell(result.measurement),
              result.measurement.sample_ns_size());
    EXPECT_GE(SamplesThatTell(result.measurement), options.min_samples());
    EXPECT_NEAR(result.measurement.median_ns(), true_ns, .01 * true_ns);
  }
}

// Some of the samples, those that caches kept busy for long, work for 2 ms,
// too: what is fastest among these is twice what the code takes.
TEST(StopwatchTest, LongOnesAmongShortSamplesAreNotChosen) {
  NoisyKernel kernel(1e6, 0.5, /*disturbed_share=*/1, 4);
  kernel.knows_waiting_ = true;
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(SamplesThatTell(result.measurement), 0);
}

TEST(StopwatchTest, CleanSamplesAloneMakeTheMedianWhereThereAreSome) {
  NoisyKernel kernel(4e6, 0.005, /*disturbed_share=*/0.4, 3);
  kernel.knows_waiting_ = true;
  kernel.refill_ = 1.5;
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_NEAR(result.time_ns, 4e6, 4e4);
  EXPECT_EQ(result.measurement.unwaited_ns_size(),
            result.measurement.contended_samples_size());
}

TEST(StopwatchTest, RacesOutAHopelessConfigWithALowerBound) {
  NoisyKernel kernel(1e6, 0.01, 0, 5);
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_hopeless_above_ns(5e5);
  const Sampling result = *TakeSamples(options, kernel, kernel);
  EXPECT_EQ(result.outcome, proto::CENSORED);
  EXPECT_LE(result.measurement.sample_ns_size(), 3);
  EXPECT_GT(result.time_ns, 5e5);
}

TEST(StopwatchTest, NeverRacesOutAConfigBelowTheLimit) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_hopeless_above_ns(1.2e5);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    NoisyKernel kernel(1e5, 0.05, 0, seed);
    EXPECT_EQ(TakeSamples(options, kernel, kernel)->outcome, proto::OK) << seed;
  }
}

TEST(StopwatchTest, AColdOrInPlaceKernelKeepsItsLimitOfCalls) {
  NoisyKernel kernel(/*true_ns=*/1000, 0.01, 0, 6);
  kernel.max_calls_ = 1;
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_EQ(result.measurement.calls_per_sample(), 1);
  EXPECT_EQ(kernel.total_calls_, kernel.samples_);
}

TEST(StopwatchTest, CorrectsTheBatchWhenTheWarmUpWasMuchSlower) {
  NoisyKernel kernel(/*true_ns=*/1000, 0.001, 0, 7);
  kernel.first_calls_slow_ = true;
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_warm_up_ns(0);
  const Sampling result = *TakeSamples(options, kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_GE(result.measurement.sample_ns(0), options.min_sample_ns() / 2);
  EXPECT_NEAR(result.time_ns, 1000, 20);
}

TEST(StopwatchTest, LongCallsGetByWithThreeSamplesWarmUpIncluded) {
  NoisyKernel kernel(/*true_ns=*/1e9, 0.01, 0, 8);
  const Sampling result =
      *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_EQ(result.measurement.sample_ns_size(), 3);
  EXPECT_EQ(kernel.total_calls_, 3);
}

TEST(StopwatchTest, TheFirstLongCallOfAHopelessConfigIsItsLast) {
  NoisyKernel kernel(/*true_ns=*/1e8, 0.01, 0, 9);
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_hopeless_above_ns(7e7);
  const Sampling result = *TakeSamples(options, kernel, kernel);
  EXPECT_EQ(result.outcome, proto::CENSORED);
  EXPECT_EQ(kernel.total_calls_, 1);
}

TEST(StopwatchTest, TheFirstSampleSaysWhetherALongConfigIsHopeless) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_hopeless_above_ns(1e8);
  NoisyKernel hopeless(2e8, .01, 0, 1);
  const Sampling last = *TakeFirstSample(options, hopeless, hopeless);
  EXPECT_EQ(last.outcome, proto::CENSORED);
  EXPECT_EQ(hopeless.total_calls_, 1);
  EXPECT_NEAR(last.time_ns, 2e8, 2e7);

  NoisyKernel good(9e7, .01, 0, 2);
  const Sampling first = *TakeFirstSample(options, good, good);
  EXPECT_EQ(first.outcome, proto::OK);
  // It is the first of the samples that decide.
  options.set_max_time_ns(1);
  options.set_warm_up_ns(0);
  const Sampling result = *TakeSamples(options, good, good, &first);
  EXPECT_EQ(result.outcome, proto::OK);
  EXPECT_EQ(good.total_calls_, kMinCleanSamples);
  EXPECT_EQ(result.measurement.sample_ns(0), first.measurement.sample_ns(0));

  // Not hopeless, and yet too slow to be the best.
  options.set_decisive_above_ns(1.05e8);
  NoisyKernel slower(1.2e8, .01, 0, 5);
  EXPECT_EQ(TakeFirstSample(options, slower, slower)->outcome, proto::CENSORED);
  NoisyKernel similar(1.07e8, .01, 0, 6);
  EXPECT_EQ(TakeFirstSample(options, similar, similar)->outcome, proto::OK);
  options.clear_decisive_above_ns();

  // A disturbed one says little, a short one nothing about what follows.
  NoisyKernel disturbed(1.6e8 / 8, .01, 1, 3);
  EXPECT_EQ(TakeFirstSample(options, disturbed, disturbed)->outcome, proto::OK);
  NoisyKernel brief(1e5, .01, 0, 4);
  const Sampling one = *TakeFirstSample(options, brief, brief);
  const Sampling many =
      *TakeSamples(DefaultSamplingOptions(), brief, brief, &one);
  EXPECT_GE(many.measurement.sample_ns_size(), 7);
}

TEST(StopwatchTest, FewSamplesDecideWhereACallIsClearlySlower) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_max_time_ns(1);
  options.set_warm_up_ns(0);
  options.set_decisive_above_ns(1.05e8);
  NoisyKernel slower(1.2e8, .01, 0, 1);
  EXPECT_EQ(TakeSamples(options, slower, slower)->outcome, proto::OK);
  EXPECT_EQ(slower.total_calls_, 1);
  NoisyKernel better(.95e8, .01, 0, 2);
  EXPECT_EQ(TakeSamples(options, better, better)->outcome, proto::OK);
  EXPECT_EQ(better.total_calls_, kMinCleanSamples);
  // Short calls vary too much for one.
  NoisyKernel brief(1e5, .01, 0, 3);
  options.set_decisive_above_ns(.9e5);
  options.set_max_time_ns(200'000'000);
  EXPECT_EQ(TakeSamples(options, brief, brief)->measurement.sample_ns_size(),
            kMinCleanSamples);
  NoisyKernel faster(.8e5, .01, 0, 4);
  EXPECT_GE(TakeSamples(options, faster, faster)->measurement.sample_ns_size(),
            7);
}

// Slow until its fortieth batch, and a machine that is asked after every fifth.
class SpoiltKernel : public NoisyKernel {
 public:
  SpoiltKernel() : NoisyKernel(1e5, .002, 0, 12) {}
  absl::StatusOr<int64_t> TimeNs() override {
    const absl::StatusOr<int64_t> ns = NoisyKernel::TimeNs();
    const bool spoilt = (samples_ < spoilt_batches_) != cold_;
    cold_ = false;
    return static_cast<int64_t>(*ns * (spoilt ? 1.25 : 1));
  }
  bool Calibrate() override {
    ++asked_;
    cold_ = asked_ % 5 == 0;
    return cold_;
  }

  int spoilt_batches_ = 40;
  int asked_ = 0;
  bool cold_ = false;
};

TEST(StopwatchTest, GoesOnForTheMinimumSoThatANeighbourMayLeave) {
  SpoiltKernel brief, longer;
  proto::SamplingOptions options = DefaultSamplingOptions();
  const Sampling a = *TakeSamples(options, brief, brief);
  EXPECT_EQ(brief.asked_, 0);
  options.set_min_time_ns(10'000'000);
  const Sampling b = *TakeSamples(options, longer, longer);
  const auto fastest = [](const Sampling& s) {
    return *std::min_element(s.measurement.sample_ns().begin(),
                             s.measurement.sample_ns().end());
  };
  EXPECT_GT(fastest(a), 1.2e5);
  EXPECT_NEAR(fastest(b), 1e5, 1e3);
  // It takes the minimum of samples, and no more.
  EXPECT_GE(b.measurement.sample_ns_size(), 80);
  EXPECT_LE(b.measurement.sample_ns_size(), 130);
}

TEST(StopwatchTest, GoesOnUntilTheFastestSampleIsFound) {
  SpoiltKernel kernel;
  kernel.spoilt_batches_ = 80;
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(10'000'000);
  options.set_target_relative_half_width(.2);
  const Sampling result = *TakeSamples(options, kernel, kernel);
  EXPECT_NEAR(*std::min_element(result.measurement.sample_ns().begin(),
                                result.measurement.sample_ns().end()),
              1e5, 1e3);
  // The neighbour does not change the number of samples.
  EXPECT_GE(result.measurement.sample_ns_size(), 100);
  EXPECT_LE(result.measurement.sample_ns_size(), 140);
}

TEST(StopwatchTest, TheBatchAfterCalibrationIsNoSample) {
  SpoiltKernel kernel;
  kernel.samples_ = 40;  // the neighbour is gone
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_time_ns(10'000'000);
  const Sampling result = *TakeSamples(options, kernel, kernel);
  EXPECT_GE(kernel.asked_, 40);
  const double slow_ns =
      1.1e5 * static_cast<double>(result.measurement.calls_per_sample());
  for (const int64_t ns : result.measurement.sample_ns()) {
    EXPECT_LT(ns, slow_ns);
  }
}

TEST(StopwatchTest, AFailureOfTheDeviceEndsTheSampling) {
  class Failing : public NoisyKernel {
   public:
    Failing() : NoisyKernel(1e5, 0.01, 0, 10) {}
    absl::StatusOr<int64_t> TimeNs() override {
      if (samples_ > 5) return absl::InternalError("late error");
      return NoisyKernel::TimeNs();
    }
  };
  Failing kernel;
  const auto result = TakeSamples(DefaultSamplingOptions(), kernel, kernel);
  EXPECT_EQ(result.status().message(), "late error");
}

// One whose Prepare() makes untimed calls, as with hot caches on a GPU, and
// whose energy is a joule per call, whoever makes it.
class PreparedKernel : public ops::Timer {
 public:
  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    joules_ += static_cast<double>(calls);
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    joules_ += static_cast<double>(calls_);
    return calls_ * 1000;
  }
  absl::StatusOr<Ran> Run(int64_t calls) override {
    joules_ += static_cast<double>(calls);
    runs_.push_back(calls);
    return Ran{calls, calls * 1000};
  }

  double joules_ = 0;
  std::vector<int64_t> runs_;

 private:
  int64_t calls_ = 0;
};

class JouleMeter : public ops::Meter {
 public:
  explicit JouleMeter(const PreparedKernel& kernel) : kernel_(kernel) {
    info_.metric = "joules";
    info_.min_window = absl::Milliseconds(200);
    info_.warm_up = absl::Milliseconds(100);
    info_.source = "a count";
  }
  const ops::MeterInfo& info() const override { return info_; }
  absl::Status Begin() override {
    before_ = kernel_.joules_;
    return absl::OkStatus();
  }
  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override {
    proto::MeterWindow window;
    window.set_value(kernel_.joules_ - before_);
    return window;
  }
  double before_ = 0;

 private:
  const PreparedKernel& kernel_;
  ops::MeterInfo info_;
};

TEST(StopwatchTest, WhatPreparesCallsIsInNeitherEnergyNorTime) {
  PreparedKernel kernel;
  JouleMeter meter(kernel);
  const auto window = TakeWindow(/*calls=*/100, kernel, meter);
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_EQ(window->value(), static_cast<double>(window->calls()));
  EXPECT_GE(window->duration_ns(), 200'000'000);
  EXPECT_LE(window->duration_ns(), 210'000'000);
  EXPECT_EQ(window->source(), "a count");
  EXPECT_GE(meter.before_, 100'000) << "100 ms of warm-up come before";
  // Long runs, so that a device hardly idles in between.
  EXPECT_LT(kernel.runs_.size(), 12u);

  const auto longer = TakeWindow(100, kernel, meter, absl::Seconds(1));
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_GE(longer->duration_ns(), 1'000'000'000);
}

TEST(StopwatchTest, CallsThatNeedPreparingAreNotMetered) {
  class Cold : public PreparedKernel {
   public:
    absl::StatusOr<Ran> Run(int64_t calls) override {
      return ops::Timer::Run(calls);
    }
  };
  Cold kernel;
  JouleMeter meter(kernel);
  EXPECT_EQ(TakeWindow(100, kernel, meter).status().code(),
            absl::StatusCode::kUnimplemented);
}

// Counts a joule per call.
class CallMeter : public ops::Meter {
 public:
  CallMeter() {
    info_.metric = "joules";
    info_.unit = "J";
    info_.min_window = absl::Milliseconds(50);
    info_.whole_device = true;
  }
  const ops::MeterInfo& info() const override { return info_; }
  absl::Status Begin() override { return absl::OkStatus(); }
  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override {
    proto::MeterWindow window;
    window.set_metric(info_.metric);
    window.set_value(static_cast<double>(calls));
    return window;
  }

 private:
  ops::MeterInfo info_;
};

TEST(StopwatchTest, AMeterGetsAWindowOfBackToBackCalls) {
  NoisyKernel kernel(/*true_ns=*/1000, 0.01, 0, 11);
  CallMeter meter;
  const auto window = TakeWindow(/*calls=*/100, kernel, meter);
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_GE(window->duration_ns(), 50'000'000);
  EXPECT_LE(window->duration_ns(), 51'000'000);
  EXPECT_EQ(window->calls(), kernel.total_calls_);
  EXPECT_EQ(window->value(), static_cast<double>(kernel.total_calls_));
  EXPECT_TRUE(window->whole_device());
}

// The interval of the median is what stops sampling, so it must hold: over many
// seeds the error stays within a few half-widths.
TEST(StopwatchTest, ErrorOfTheMedianMatchesTheTargetedPrecision) {
  int within = 0;
  constexpr int kSeeds = 300;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    NoisyKernel kernel(1e5, 0.03, 0.1, 1000 + seed);
    const Sampling result =
        *TakeSamples(DefaultSamplingOptions(), kernel, kernel);
    ASSERT_EQ(result.outcome, proto::OK);
    if (std::abs(result.time_ns / 1e5 - 1) < 0.015) ++within;
  }
  EXPECT_GE(within, kSeeds * 95 / 100);
}

}  // namespace
}  // namespace optrail::suites
