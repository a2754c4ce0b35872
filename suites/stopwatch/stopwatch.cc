#include "suites/stopwatch/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/types/optional.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "ops/core/neighbours.h"

namespace optrail::suites {
namespace {

// Before kMinCleanSamples, one tells that a config is slower by this factor;
// one long call varies little.
constexpr double kFarSlower = 3;
constexpr double kLongSlower = 1.3;

// The first of long calls may be slower than those that follow by as much as
// this.
constexpr double kColdStart = 1.05;

// A sample may miss its target length by this factor before the number of
// calls is corrected.
constexpr double kCallsSlack = 2;

// The fastest sample is found where as many more bring none that is faster by
// this fraction.
constexpr double kFoundFraction = 0.003;

// Where a hypervisor takes the core away, the kernel's account of who worked
// and who waited errs by a tenth of a millisecond: nothing beside samples of so
// many calls that they work for longer. (Which of shorter samples happened to
// work for as long says how they were disturbed, so that is no way to choose.)
constexpr double kLeastUnwaitedNs = 2e6;
// Samples that are made longer for that are by so much beyond it.
constexpr double kUnwaitedMargin = 1.25;

struct Batch {
  int64_t elapsed_ns = 0;
  bool disturbed = false;
  // Without its waiting for a core, where nothing else disturbed it; else 0.
  int64_t unwaited_ns = 0;
};

absl::StatusOr<Batch> TimeBatch(int64_t calls, ops::Timer& timer,
                                ops::Monitor& monitor) {
  Batch batch;
  OPTRAIL_RETURN_IF_ERROR(timer.Prepare(calls));
  monitor.Begin();
  OPTRAIL_ASSIGN_OR_RETURN(batch.elapsed_ns, timer.TimeNs());
  batch.disturbed = monitor.End(batch.elapsed_ns);
  const absl::optional<int64_t> worked_ns = timer.WorkedNs();
  if (batch.disturbed && monitor.WaitedNs() > 0 && worked_ns.has_value()) {
    // The batch waited for no longer than that and worked for no longer than
    // this, so neither makes it faster than it is.
    const int64_t unwaited_ns =
        std::max(batch.elapsed_ns - monitor.WaitedNs(), *worked_ns);
    if (unwaited_ns < batch.elapsed_ns) batch.unwaited_ns = unwaited_ns;
  }
  return batch;
}

// How many calls fill min_sample_ns, found by doubling from one call; the calls
// made on the way warm caches, branch predictors and clocks up, and tell the
// monitor what is usual.
struct WarmedUp {
  int64_t calls = 1;  // per sample
  // The last batch, where it is as good as a sample.
  absl::optional<Batch> sample;
};

absl::StatusOr<WarmedUp> WarmUp(const proto::SamplingOptions& options,
                                ops::Timer& timer, ops::Monitor& monitor) {
  int64_t calls = 1;
  int64_t spent_ns = 0;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const Batch batch,
                             TimeBatch(calls, timer, monitor));
    const int64_t elapsed_ns = std::max<int64_t>(1, batch.elapsed_ns);
    spent_ns += elapsed_ns;
    const double per_call_ns =
        static_cast<double>(elapsed_ns) / static_cast<double>(calls);
    const int64_t wanted = std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(
            static_cast<double>(options.min_sample_ns()) / per_call_ns)),
        1, timer.max_calls());
    const bool long_enough = calls >= wanted || calls == timer.max_calls();
    if (long_enough && spent_ns >= options.warm_up_ns()) {
      WarmedUp result;
      result.calls = wanted;
      // What a cold start adds does not show beside so long a call.
      if (elapsed_ns >= kLongCallNs && calls == wanted) result.sample = batch;
      return result;
    }
    // The first calls are slower than later ones: approach from below.
    if (!long_enough) {
      calls = std::min({wanted, calls * 10, timer.max_calls()});
    }
  }
}

bool PreciseEnough(const std::vector<double>& times, double target) {
  const Interval interval = MedianInterval(times, kMedianConfidence);
  // Too few samples for it promise nothing.
  if (interval.confidence < kMedianConfidence) return false;
  const double half_width = (interval.high - interval.low) / 2;
  return half_width <= target * Median(times);
}

// Returns how many of the last samples turn out to have been disturbed, if the
// sampling has time to ask (a search has not: its finalists are read again).
int CountDisturbedLate(const proto::SamplingOptions& options,
                       ops::Monitor& monitor) {
  auto* const late = dynamic_cast<ops::LateMonitor*>(&monitor);
  if (late == nullptr || options.min_time_ns() == 0) return 0;
  return late->CountDisturbedLate();
}

// Whether the second half of the samples, in order, has none that is faster
// than all of the first. Where neighbours come and go, a sample that meets none
// may be still to come.
bool FoundFastest(const std::vector<double>& samples) {
  const auto middle =
      samples.begin() + static_cast<int64_t>(samples.size() / 2);
  if (middle == samples.begin()) return false;
  return *std::min_element(middle, samples.end()) >
         (1 - kFoundFraction) * *std::min_element(samples.begin(), middle);
}

}  // namespace

proto::SamplingOptions DefaultSamplingOptions() {
  proto::SamplingOptions options;
  // Reading the clock takes some 30 ns and the monitor's reads, outside the
  // timed region, some microseconds: at 100 us a sample neither shows.
  options.set_min_sample_ns(100'000);
  options.set_warm_up_ns(2'000'000);
  options.set_max_time_ns(200'000'000);
  options.set_min_samples(7);
  options.set_max_samples(200);
  options.set_target_relative_half_width(0.01);
  return options;
}

absl::StatusOr<Sampling> TakeFirstSample(const proto::SamplingOptions& options,
                                         ops::Timer& timer,
                                         ops::Monitor& monitor) {
  OPTRAIL_ASSIGN_OR_RETURN(const Batch batch, TimeBatch(1, timer, monitor));
  Sampling first;
  first.outcome = proto::OK;
  first.time_ns = static_cast<double>(batch.elapsed_ns);
  first.measurement.set_calls_per_sample(1);
  first.measurement.add_sample_ns(batch.elapsed_ns);
  if (batch.disturbed) {
    first.measurement.add_contended_samples(0);
    first.measurement.add_unwaited_ns(batch.unwaited_ns);
  } else {
    first.measurement.set_clean_sample_count(1);
    first.measurement.set_median_ns(first.time_ns);
  }
  const double slower = batch.disturbed || batch.elapsed_ns < kLongCallNs
                            ? kFarSlower
                            : kLongSlower;
  const bool hopeless = options.has_hopeless_above_ns() &&
                        first.time_ns > slower * options.hopeless_above_ns();
  const bool decided = options.has_decisive_above_ns() && !batch.disturbed &&
                       batch.elapsed_ns >= kLongCallNs &&
                       first.time_ns > kColdStart * options.decisive_above_ns();
  if (hopeless || decided) first.outcome = proto::CENSORED;
  return first;
}

namespace {

// The samples of one contender, and what they say so far.
class Samples {
 public:
  Samples(const proto::SamplingOptions& options, ops::Timer& timer,
          ops::Monitor& monitor)
      : options_(options), timer_(timer), monitor_(monitor) {}

  // Warms up, unless `first` stands for that.
  absl::Status Begin(const Sampling* first) {
    WarmedUp warmed_up;
    if (first != nullptr && first->time_ns >= kLongCallNs &&
        first->time_ns >= static_cast<double>(options_.min_sample_ns())) {
      const bool disturbed = first->measurement.contended_samples_size() > 0;
      warmed_up.sample =
          Batch{first->measurement.sample_ns(0), disturbed,
                disturbed ? first->measurement.unwaited_ns(0) : 0};
    } else {
      OPTRAIL_ASSIGN_OR_RETURN(warmed_up, WarmUp(options_, timer_, monitor_));
    }
    Restart(warmed_up.calls);
    ready_ = warmed_up.sample;
    return absl::OkStatus();
  }

  // Forgets the samples; the next ones have so many calls.
  void Restart(int64_t calls) {
    calls_ = std::min(timer_.max_calls(), calls);
    measurement_.Clear();
    measurement_.set_calls_per_sample(calls_);
    batches_.clear();
    clean_.clear();
    unwaited_.clear();
    by_round_.clear();
    fastest_ns_ = HUGE_VAL;
  }

  // The next sample; the warm-up may have left one.
  absl::StatusOr<Batch> Take() {
    if (ready_.has_value()) return *std::exchange(ready_, absl::nullopt);
    return TimeBatch(calls_, timer_, monitor_);
  }
  bool has_one_ready() const { return ready_.has_value(); }
  void ForgetWarmUp() { ready_.reset(); }

  void Add(const Batch& batch) {
    batches_.push_back(batch);
    if (batch.disturbed) {
      measurement_.add_contended_samples(measurement_.sample_ns_size());
      measurement_.add_unwaited_ns(batch.unwaited_ns);
    }
    measurement_.add_sample_ns(batch.elapsed_ns);
    if (batch.unwaited_ns > 0) {
      unwaited_.push_back(PerCall(batch.unwaited_ns));
      fastest_ns_ = std::min(fastest_ns_, unwaited_.back());
    }
    if (!batch.disturbed) {
      clean_.push_back(PerCall(std::max<int64_t>(1, batch.elapsed_ns)));
      fastest_ns_ = std::min(fastest_ns_, clean_.back());
    }
    by_round_.push_back(batch.disturbed ? 0 : clean_.back());
  }

  // The last `count` samples were disturbed, as it turns out.
  void DisturbLast(int count) {
    const std::vector<Batch> batches = std::move(batches_);
    const int size = static_cast<int>(batches.size());
    Restart(calls_);
    for (int i = 0; i < size; ++i) {
      Add(i < size - count ? batches[i]
                           : Batch{batches[i].elapsed_ns, true, 0});
    }
  }

  int64_t calls() const { return calls_; }
  bool may_have_more_calls() const { return calls_ < timer_.max_calls(); }
  int taken() const { return measurement_.sample_ns_size(); }
  // In nanoseconds per call.
  const std::vector<double>& clean() const { return clean_; }
  double fastest_clean_ns() const {
    return *std::min_element(clean_.begin(), clean_.end());
  }
  double fastest_ns() const { return fastest_ns_; }
  bool has_unwaited() const { return !unwaited_.empty(); }
  // Whether samples work for so long that their waiting can be taken out.
  bool IsWaitingKnown() const {
    return static_cast<double>(calls_) * fastest_ns_ >= kLeastUnwaitedNs;
  }
  // The ratios of the rounds in which both were left alone.
  std::vector<double> RatiosTo(const Samples& other) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < by_round_.size(); ++i) {
      if (by_round_[i] > 0 && other.by_round_[i] > 0) {
        ratios.push_back(by_round_[i] / other.by_round_[i]);
      }
    }
    return ratios;
  }

  // What was sampled, with the median of samples that tell.
  Sampling Finish(proto::Outcome outcome, double time_ns) {
    Sampling result;
    result.outcome = outcome;
    result.time_ns = time_ns;
    measurement_.set_clean_sample_count(static_cast<int>(clean_.size()));
    if (!clean_.empty()) measurement_.set_median_ns(Median(clean_));
    if (!IsWaitingKnown()) {
      unwaited_.clear();
      for (int64_t& ns : *measurement_.mutable_unwaited_ns()) ns = 0;
    }
    if (clean_.size() < kMinCleanSamples && !unwaited_.empty()) {
      unwaited_.insert(unwaited_.end(), clean_.begin(), clean_.end());
      measurement_.set_median_ns(Median(unwaited_));
    }
    result.measurement = std::move(measurement_);
    return result;
  }

 private:
  double PerCall(int64_t ns) const {
    return static_cast<double>(ns) / static_cast<double>(calls_);
  }

  const proto::SamplingOptions& options_;
  ops::Timer& timer_;
  ops::Monitor& monitor_;
  int64_t calls_ = 1;  // per sample
  absl::optional<Batch> ready_;
  proto::Measurement measurement_;
  std::vector<Batch> batches_;
  std::vector<double> clean_, unwaited_;
  std::vector<double> by_round_;  // 0 where it was disturbed
  double fastest_ns_ = HUGE_VAL;  // of clean and unwaited samples
};

// Whether `batch`, the last sample, shows that its config cannot win.
bool IsRacedOut(const proto::SamplingOptions& options, const Samples& samples,
                const Batch& batch) {
  if (!options.has_hopeless_above_ns() || samples.clean().empty()) return false;
  double factor = 1;
  if (samples.clean().size() < kMinCleanSamples) {
    factor = batch.elapsed_ns >= kLongCallNs ? kLongSlower : kFarSlower;
  }
  return samples.fastest_clean_ns() > factor * options.hopeless_above_ns();
}

bool IsDecided(const proto::SamplingOptions& options, const Samples& samples,
               const Batch& batch) {
  return options.has_decisive_above_ns() && !samples.clean().empty() &&
         (batch.elapsed_ns >= kLongCallNs ||
          samples.clean().size() >= kMinCleanSamples) &&
         samples.fastest_clean_ns() > options.decisive_above_ns();
}

// When one contender has been sampled enough.
class AloneRule {
 public:
  explicit AloneRule(const proto::SamplingOptions& options)
      : options_(options), next_look_(options.min_samples()) {}

  enum class Next { kGoOn, kEnough, kContended, kLonger };
  Next After(const Samples& samples, int64_t spent_ns) {
    const std::vector<double>& clean = samples.clean();
    const bool out_of_time = spent_ns >= options_.max_time_ns();
    // Calls so long that min_samples of them exceed the time limit.
    const bool long_calls = out_of_time && clean.size() >= kMinCleanSamples;
    const bool enough = clean.size() >= options_.min_samples() || long_calls;
    if (enough) {
      if (clean.size() >= next_look_) {
        if (IsPrecise(clean, spent_ns)) return Next::kEnough;
        next_look_ = clean.size() + std::max<size_t>(1, clean.size() / 10);
      }
      return out_of_time || clean.size() >= options_.max_samples()
                 ? Next::kEnough
                 : Next::kGoOn;
    }
    // Samples that are never left alone tell where they are longer.
    if (out_of_time && !made_longer_ && options_.min_time_ns() > 0 &&
        samples.has_unwaited() && !samples.IsWaitingKnown() &&
        samples.may_have_more_calls()) {
      made_longer_ = true;
      return Next::kLonger;
    }
    return spent_ns >= 2 * options_.max_time_ns() &&
                   samples.taken() >= 2 * kMinCleanSamples
               ? Next::kContended
               : Next::kGoOn;
  }
  void StartOver() { next_look_ = options_.min_samples(); }

 private:
  bool IsPrecise(const std::vector<double>& clean, int64_t spent_ns) const {
    return spent_ns >= options_.min_time_ns() &&
           (options_.min_time_ns() == 0 || FoundFastest(clean)) &&
           PreciseEnough(clean, options_.target_relative_half_width());
  }

  const proto::SamplingOptions& options_;
  // Sorting for each new sample would be quadratic: precision is looked at
  // when the number of samples has grown by a tenth.
  size_t next_look_;
  bool made_longer_ = false;
};

}  // namespace

absl::StatusOr<Sampling> TakeSamples(const proto::SamplingOptions& options,
                                     ops::Timer& timer, ops::Monitor& monitor,
                                     const Sampling* first) {
  Samples samples(options, timer, monitor);
  OPTRAIL_RETURN_IF_ERROR(samples.Begin(first));
  AloneRule rule(options);
  const auto start_over = [&](int64_t calls) {
    samples.Restart(calls);
    rule.StartOver();
  };
  int64_t spent_ns = 0;
  while (true) {
    if (!samples.has_one_ready() && options.min_time_ns() > 0 &&
        monitor.Calibrate()) {
      // Its loops had the caches: the next calls make them warm again.
      OPTRAIL_RETURN_IF_ERROR(samples.Take().status());
    }
    OPTRAIL_ASSIGN_OR_RETURN(const Batch batch, samples.Take());
    spent_ns += batch.elapsed_ns;
    if (!batch.disturbed && samples.may_have_more_calls() &&
        static_cast<double>(batch.elapsed_ns) * kCallsSlack <
            static_cast<double>(options.min_sample_ns())) {
      // The warm-up was slower than the steady state: start over, longer.
      start_over(samples.calls() * 2);
      continue;
    }
    samples.Add(batch);
    if (IsRacedOut(options, samples, batch)) {
      return samples.Finish(proto::CENSORED, samples.fastest_clean_ns());
    }
    if (IsDecided(options, samples, batch)) {
      return samples.Finish(proto::OK, Median(samples.clean()));
    }
    switch (rule.After(samples, spent_ns)) {
      case AloneRule::Next::kGoOn:
        break;
      case AloneRule::Next::kEnough:
        if (const int late = CountDisturbedLate(options, monitor); late > 0) {
          samples.DisturbLast(late);
          rule.StartOver();
          if (rule.After(samples, spent_ns) != AloneRule::Next::kEnough) break;
        }
        return samples.Finish(proto::OK, Median(samples.clean()));
      case AloneRule::Next::kContended:
        return samples.Finish(proto::CONTENDED, 0);
      case AloneRule::Next::kLonger:
        start_over(static_cast<int64_t>(std::ceil(
            kUnwaitedMargin * kLeastUnwaitedNs / samples.fastest_ns())));
    }
  }
}

namespace {

// When several have been told apart from the first by so many rounds.
bool IsEnoughTogether(const proto::SamplingOptions& options,
                      const std::vector<Samples>& members, int rounds,
                      double spent_ns) {
  const auto count = static_cast<double>(members.size());
  const double least_ns = static_cast<double>(options.min_time_ns()) * count;
  const double most_ns = static_cast<double>(options.max_time_ns()) * count;
  size_t fewest = rounds;
  for (const Samples& member : members) {
    fewest = std::min(fewest, member.RatiosTo(members[0]).size());
  }
  const auto precise = [&] {
    return std::all_of(
        members.begin() + 1, members.end(), [&](const Samples& member) {
          return PreciseEnough(member.RatiosTo(members[0]),
                               options.target_relative_half_width());
        });
  };
  const bool enough = fewest >= static_cast<size_t>(options.min_samples());
  if (enough && ((spent_ns >= least_ns && precise()) || spent_ns >= most_ns ||
                 rounds >= options.max_samples())) {
    return true;
  }
  // Long calls get by with a few; what is never left alone says nothing.
  return spent_ns >= (fewest >= kMinCleanSamples ? 1 : 2) * most_ns &&
         rounds >= 2 * kMinCleanSamples;
}

}  // namespace

absl::StatusOr<std::vector<Sampling>> TakeSamples(
    const proto::SamplingOptions& options, absl::Span<ops::Timer* const> timers,
    ops::Monitor& monitor, const Sampling* first) {
  std::vector<Sampling> samplings;
  if (timers.empty()) return samplings;
  if (timers.size() == 1) {
    OPTRAIL_ASSIGN_OR_RETURN(samplings.emplace_back(),
                             TakeSamples(options, *timers[0], monitor, first));
    return samplings;
  }
  std::vector<Samples> members;
  for (ops::Timer* const timer : timers) {
    members.emplace_back(options, *timer, monitor);
    OPTRAIL_RETURN_IF_ERROR(members.back().Begin(/*first=*/nullptr));
    members.back().ForgetWarmUp();
  }
  double spent_ns = 0;
  for (int rounds = 1;; ++rounds) {
    for (size_t i = 0; i < members.size(); ++i) {
      Samples& member = members[rounds % 2 == 1 ? i : members.size() - 1 - i];
      OPTRAIL_ASSIGN_OR_RETURN(const Batch batch, member.Take());
      member.Add(batch);
      spent_ns += static_cast<double>(batch.elapsed_ns);
    }
    // There are as many forward rounds as backward ones.
    if (rounds % 2 == 1 ||
        !IsEnoughTogether(options, members, rounds, spent_ns)) {
      continue;
    }
    const int late = CountDisturbedLate(options, monitor);
    if (late == 0) break;
    const int size = static_cast<int>(members.size());
    for (Samples& member : members)
      member.DisturbLast((late + size - 1) / size);
    if (IsEnoughTogether(options, members, rounds, spent_ns)) break;
  }
  for (Samples& member : members) {
    const std::vector<double> ratios = member.RatiosTo(members[0]);
    const bool tells = ratios.size() >= kMinCleanSamples;
    Sampling& sampling = samplings.emplace_back(
        member.Finish(tells ? proto::OK : proto::CONTENDED,
                      tells ? Median(ratios) * Median(members[0].clean()) : 0));
    // The median of its own samples is of other moments than those of others.
    sampling.measurement.clear_median_ns();
    if (tells) sampling.measurement.set_median_ns(sampling.time_ns);
  }
  return samplings;
}

int SamplesThatTell(const proto::Measurement& measurement) {
  const auto& unwaited = measurement.unwaited_ns();
  return measurement.clean_sample_count() +
         static_cast<int>(std::count_if(unwaited.begin(), unwaited.end(),
                                        [](int64_t ns) { return ns > 0; }));
}

}  // namespace optrail::suites
