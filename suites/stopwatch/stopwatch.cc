#include "suites/stopwatch/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/statistics.h"
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

// How many of the last samples turn out to have been disturbed, where the
// sampling has time to ask (a search has not: its finalists are read again).
int CountDisturbedLate(const proto::SamplingOptions& options,
                       ops::Monitor& monitor) {
  auto* const late = dynamic_cast<ops::LateMonitor*>(&monitor);
  if (late == nullptr || options.min_time_ns() == 0) return 0;
  return late->CountDisturbedLate();
}

// Marks the last `count` samples as disturbed.
void MarkDisturbed(int count, proto::Measurement* measurement) {
  const int size = measurement->sample_ns_size();
  std::map<int, int64_t> unwaited;
  for (int i = 0; i < measurement->contended_samples_size(); ++i) {
    unwaited[measurement->contended_samples(i)] = measurement->unwaited_ns(i);
  }
  for (int i = std::max(0, size - count); i < size; ++i) unwaited[i] = 0;
  measurement->clear_contended_samples();
  measurement->clear_unwaited_ns();
  for (const auto& [sample, ns] : unwaited) {
    measurement->add_contended_samples(sample);
    measurement->add_unwaited_ns(ns);
  }
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

absl::StatusOr<Sampling> TakeSamples(const proto::SamplingOptions& options,
                                     ops::Timer& timer, ops::Monitor& monitor,
                                     const Sampling* first) {
  Sampling result;
  proto::Measurement& measurement = result.measurement;
  WarmedUp warmed_up;
  if (first != nullptr && first->time_ns >= kLongCallNs &&
      first->time_ns >= static_cast<double>(options.min_sample_ns())) {
    const bool disturbed = first->measurement.contended_samples_size() > 0;
    warmed_up.sample = Batch{first->measurement.sample_ns(0), disturbed,
                             disturbed ? first->measurement.unwaited_ns(0) : 0};
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(warmed_up, WarmUp(options, timer, monitor));
  }
  int64_t calls = warmed_up.calls;
  measurement.set_calls_per_sample(calls);

  int64_t spent_ns = 0;
  std::vector<double> clean, unwaited;
  // Per call, of both.
  double fastest_ns = HUGE_VAL;
  // Sorting for each new sample would be quadratic: precision is looked at
  // when the number of samples has grown by a tenth.
  size_t next_look = options.min_samples();
  const auto start_over = [&](int64_t more_calls) {
    calls = std::min(timer.max_calls(), more_calls);
    measurement.clear_sample_ns();
    measurement.clear_contended_samples();
    measurement.clear_unwaited_ns();
    measurement.set_calls_per_sample(calls);
    clean.clear();
    unwaited.clear();
    fastest_ns = HUGE_VAL;
    next_look = options.min_samples();
  };
  // Whether samples work for so long that their waiting can be taken out.
  const auto waiting_is_known = [&] {
    return static_cast<double>(calls) * fastest_ns >= kLeastUnwaitedNs;
  };
  bool made_longer = false;
  const auto finish = [&](proto::Outcome outcome, double time_ns) {
    result.outcome = outcome;
    result.time_ns = time_ns;
    measurement.set_clean_sample_count(static_cast<int>(clean.size()));
    if (!clean.empty()) measurement.set_median_ns(Median(clean));
    if (!waiting_is_known()) {
      unwaited.clear();
      for (int64_t& ns : *measurement.mutable_unwaited_ns()) ns = 0;
    }
    if (clean.size() < kMinCleanSamples && !unwaited.empty()) {
      unwaited.insert(unwaited.end(), clean.begin(), clean.end());
      measurement.set_median_ns(Median(unwaited));
    }
    return result;
  };
  // Asked once everything else says that it is enough.
  const auto are_believed = [&] {
    const int late = CountDisturbedLate(options, monitor);
    if (late == 0) return true;
    MarkDisturbed(late, &measurement);
    clean.clear();
    unwaited.clear();
    const auto per_call = [&](int64_t ns) {
      return static_cast<double>(ns) / static_cast<double>(calls);
    };
    int disturbed = 0;
    for (int i = 0; i < measurement.sample_ns_size(); ++i) {
      if (disturbed < measurement.contended_samples_size() &&
          measurement.contended_samples(disturbed) == i) {
        const int64_t ns = measurement.unwaited_ns(disturbed++);
        if (ns > 0) unwaited.push_back(per_call(ns));
      } else {
        clean.push_back(per_call(measurement.sample_ns(i)));
      }
    }
    next_look = clean.size() + std::max<size_t>(7, clean.size() / 10);
    return false;
  };
  while (true) {
    Batch batch;
    if (warmed_up.sample.has_value()) {
      batch = *warmed_up.sample;
      warmed_up.sample.reset();
    } else {
      if (options.min_time_ns() > 0 && monitor.Calibrate()) {
        // Its loops had the caches: the next calls make them warm again.
        OPTRAIL_RETURN_IF_ERROR(TimeBatch(calls, timer, monitor).status());
      }
      OPTRAIL_ASSIGN_OR_RETURN(batch, TimeBatch(calls, timer, monitor));
    }
    const auto [elapsed_ns, disturbed, unwaited_ns] = batch;
    spent_ns += elapsed_ns;

    if (!disturbed && calls < timer.max_calls() &&
        static_cast<double>(elapsed_ns) * kCallsSlack <
            static_cast<double>(options.min_sample_ns())) {
      // The warm-up was slower than the steady state: start over, longer.
      start_over(calls * 2);
      continue;
    }
    if (disturbed) {
      measurement.add_contended_samples(measurement.sample_ns_size());
      measurement.add_unwaited_ns(unwaited_ns);
    }
    if (unwaited_ns > 0) {
      unwaited.push_back(static_cast<double>(unwaited_ns) /
                         static_cast<double>(calls));
      fastest_ns = std::min(fastest_ns, unwaited.back());
    }
    measurement.add_sample_ns(elapsed_ns);
    if (!disturbed) {
      clean.push_back(static_cast<double>(elapsed_ns) /
                      static_cast<double>(calls));
      fastest_ns = std::min(fastest_ns, clean.back());
    }

    if (options.has_hopeless_above_ns() && !clean.empty()) {
      const double fastest_clean_ns =
          *std::min_element(clean.begin(), clean.end());
      const double limit_ns =
          clean.size() >= kMinCleanSamples
              ? options.hopeless_above_ns()
              : (elapsed_ns >= kLongCallNs ? kLongSlower : kFarSlower) *
                    options.hopeless_above_ns();
      if (fastest_clean_ns > limit_ns) {
        return finish(proto::CENSORED, fastest_clean_ns);
      }
    }
    if (options.has_decisive_above_ns() && !clean.empty() &&
        (elapsed_ns >= kLongCallNs || clean.size() >= kMinCleanSamples) &&
        *std::min_element(clean.begin(), clean.end()) >
            options.decisive_above_ns()) {
      return finish(proto::OK, Median(clean));
    }
    // Calls so long that min_samples of them exceed the time limit.
    const bool long_calls =
        spent_ns >= options.max_time_ns() && clean.size() >= kMinCleanSamples;
    const bool enough = clean.size() >= options.min_samples() || long_calls;
    if (enough && clean.size() >= next_look) {
      if (spent_ns >= options.min_time_ns() &&
          (options.min_time_ns() == 0 || FoundFastest(clean)) &&
          PreciseEnough(clean, options.target_relative_half_width())) {
        if (are_believed()) return finish(proto::OK, Median(clean));
        continue;
      }
      next_look = clean.size() + std::max<size_t>(1, clean.size() / 10);
    }
    const bool capped = spent_ns >= options.max_time_ns() ||
                        clean.size() >= options.max_samples();
    if (enough && capped) {
      // Those that are left are accounted for.
      if (are_believed() || clean.size() >= options.min_samples()) {
        return finish(proto::OK, Median(clean));
      }
      continue;
    }
    // Samples that are never left alone tell where they are longer.
    if (!enough && spent_ns >= options.max_time_ns() && !made_longer &&
        options.min_time_ns() > 0 && !unwaited.empty() && !waiting_is_known() &&
        calls < timer.max_calls()) {
      made_longer = true;
      start_over(static_cast<int64_t>(
          std::ceil(kUnwaitedMargin * kLeastUnwaitedNs / fastest_ns)));
      continue;
    }
    if (!enough && spent_ns >= 2 * options.max_time_ns() &&
        measurement.sample_ns_size() >= 2 * kMinCleanSamples) {
      return finish(proto::CONTENDED, 0);
    }
  }
}

namespace {

// One of those that are sampled in turns.
struct InTurns {
  ops::Timer* timer = nullptr;
  Sampling sampling;
  std::vector<double> per_call_ns;  // of each round; of clean samples > 0

  std::vector<double> Clean() const {
    std::vector<double> clean;
    for (const double ns : per_call_ns) {
      if (ns > 0) clean.push_back(ns);
    }
    return clean;
  }

  // The last `rounds` were disturbed, as it turns out.
  void DisturbLast(int rounds) {
    MarkDisturbed(rounds, &sampling.measurement);
    const auto from =
        std::max<int64_t>(0, static_cast<int64_t>(per_call_ns.size()) - rounds);
    std::fill(per_call_ns.begin() + from, per_call_ns.end(), 0);
  }

  absl::Status TakeOne(ops::Monitor& monitor) {
    proto::Measurement& measurement = sampling.measurement;
    const int64_t calls = measurement.calls_per_sample();
    OPTRAIL_ASSIGN_OR_RETURN(const Batch batch,
                             TimeBatch(calls, *timer, monitor));
    const double ns =
        static_cast<double>(std::max<int64_t>(1, batch.elapsed_ns)) /
        static_cast<double>(calls);
    if (batch.disturbed) {
      measurement.add_contended_samples(measurement.sample_ns_size());
      measurement.add_unwaited_ns(batch.unwaited_ns);
    }
    per_call_ns.push_back(batch.disturbed ? 0 : ns);
    measurement.add_sample_ns(batch.elapsed_ns);
    return absl::OkStatus();
  }
};

// Of the rounds in which both were left alone.
std::vector<double> RatiosOf(const InTurns& one, const InTurns& other) {
  std::vector<double> ratios;
  for (size_t i = 0; i < one.per_call_ns.size(); ++i) {
    if (one.per_call_ns[i] > 0 && other.per_call_ns[i] > 0) {
      ratios.push_back(one.per_call_ns[i] / other.per_call_ns[i]);
    }
  }
  return ratios;
}

}  // namespace

absl::StatusOr<std::vector<Sampling>> TakeSamplesInTurns(
    const proto::SamplingOptions& options, absl::Span<ops::Timer* const> timers,
    ops::Monitor& monitor) {
  std::vector<InTurns> members(timers.size());
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].timer = timers[i];
    OPTRAIL_ASSIGN_OR_RETURN(const WarmedUp warmed_up,
                             WarmUp(options, *timers[i], monitor));
    members[i].sampling.measurement.set_calls_per_sample(warmed_up.calls);
  }
  const int size = static_cast<int>(members.size());
  const auto count = static_cast<double>(size);
  const double least_ns = static_cast<double>(options.min_time_ns()) * count;
  const double most_ns = static_cast<double>(options.max_time_ns()) * count;
  constexpr int kMinRounds = 2 * kMinCleanSamples;
  double spent_ns = 0;
  // Whether all have been told apart from the first by so many samples.
  const auto precise = [&] {
    return std::all_of(
        members.begin() + 1, members.end(), [&](const InTurns& member) {
          return PreciseEnough(RatiosOf(member, members[0]),
                               options.target_relative_half_width());
        });
  };
  for (int rounds = 1; !members.empty(); ++rounds) {
    for (size_t i = 0; i < members.size(); ++i) {
      InTurns& member = members[rounds % 2 == 1 ? i : members.size() - 1 - i];
      OPTRAIL_RETURN_IF_ERROR(member.TakeOne(monitor));
      spent_ns += static_cast<double>(
          *member.sampling.measurement.sample_ns().rbegin());
    }
    // As often forwards as backwards.
    if (rounds % 2 == 1) continue;
    size_t fewest = rounds;
    for (const InTurns& member : members) {
      fewest = std::min(fewest, RatiosOf(member, members[0]).size());
    }
    const bool enough = fewest >= static_cast<size_t>(options.min_samples());
    // Long calls get by with a few; what is never left alone says nothing.
    const bool few_tell = fewest >= kMinCleanSamples;
    const bool spent =
        spent_ns >= (few_tell ? 1 : 2) * most_ns && rounds >= kMinRounds;
    const bool is_enough =
        enough && ((spent_ns >= least_ns && precise()) || spent_ns >= most_ns ||
                   rounds >= options.max_samples());
    if (spent && !few_tell) break;
    if (spent || is_enough) {
      const int late = CountDisturbedLate(options, monitor);
      if (late == 0) break;
      for (InTurns& member : members) {
        member.DisturbLast((late + size - 1) / size);
      }
      // Those that are left are accounted for.
      if (spent) break;
    }
  }
  std::vector<Sampling> samplings;
  for (InTurns& member : members) {
    Sampling& sampling = member.sampling;
    sampling.outcome = proto::CONTENDED;
    sampling.measurement.set_clean_sample_count(
        static_cast<int>(member.Clean().size()));
    const std::vector<double> ratios = RatiosOf(member, members[0]);
    if (ratios.size() >= kMinCleanSamples) {
      sampling.outcome = proto::OK;
      sampling.time_ns = Median(ratios) * Median(members[0].Clean());
      sampling.measurement.set_median_ns(sampling.time_ns);
    }
    samplings.push_back(std::move(sampling));
  }
  return samplings;
}

int SamplesThatTell(const proto::Measurement& measurement) {
  const auto& unwaited = measurement.unwaited_ns();
  return measurement.clean_sample_count() +
         static_cast<int>(std::count_if(unwaited.begin(), unwaited.end(),
                                        [](int64_t ns) { return ns > 0; }));
}

namespace {

// Between two runs of this length a device idles for some microseconds; a
// longer one ends late.
constexpr int64_t kRunNs = 50'000'000;

// Calls back to back, at least as long as `duration`.
absl::StatusOr<ops::Timer::Ran> RunFor(int64_t calls, ops::Timer& timer,
                                       absl::Duration duration) {
  const int64_t window_ns = absl::ToInt64Nanoseconds(duration);
  ops::Timer::Ran all;
  while (all.elapsed_ns < window_ns) {
    OPTRAIL_ASSIGN_OR_RETURN(const ops::Timer::Ran ran, timer.Run(calls));
    all.calls += ran.calls;
    all.elapsed_ns += std::max<int64_t>(1, ran.elapsed_ns);
    const double call_ns = static_cast<double>(all.elapsed_ns) /
                           static_cast<double>(std::max<int64_t>(1, all.calls));
    const int64_t left_ns = std::min(kRunNs, window_ns - all.elapsed_ns);
    calls = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(left_ns) / call_ns) + 1);
  }
  return all;
}

}  // namespace

absl::Status KeepBusy(int64_t calls, ops::Timer& timer,
                      absl::Duration duration) {
  OPTRAIL_RETURN_IF_ERROR(timer.Prepare(calls));
  return RunFor(calls, timer, duration).status();
}

absl::StatusOr<proto::MeterWindow> TakeWindow(int64_t calls, ops::Timer& timer,
                                              ops::Meter& meter,
                                              absl::Duration min_window,
                                              bool quickly) {
  const ops::MeterInfo& info = meter.info();
  quickly = quickly && min_window > absl::ZeroDuration();
  OPTRAIL_RETURN_IF_ERROR(timer.Prepare(calls));
  OPTRAIL_RETURN_IF_ERROR(
      RunFor(calls, timer,
             quickly ? std::min(info.warm_up, kQuickWarmUp) : info.warm_up)
          .status());
  OPTRAIL_RETURN_IF_ERROR(meter.Begin());
  const absl::StatusOr<ops::Timer::Ran> ran =
      RunFor(calls, timer,
             quickly ? min_window : std::max(info.min_window, min_window));
  absl::StatusOr<proto::MeterWindow> window =
      meter.End(ran.ok() ? ran->calls : 0);
  OPTRAIL_RETURN_IF_ERROR(ran.status());
  if (!window.ok()) return window.status();
  window->set_calls(ran->calls);
  if (window->duration_ns() == 0) window->set_duration_ns(ran->elapsed_ns);
  window->set_estimated(info.estimated);
  window->set_whole_device(info.whole_device);
  if (window->source().empty()) window->set_source(info.source);
  return window;
}

}  // namespace optrail::suites
