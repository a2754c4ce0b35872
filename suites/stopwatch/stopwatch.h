#ifndef OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_
#define OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_

// The one stopwatch: decides how many calls make a sample, how many samples are
// enough, and which of them were disturbed. Tuning and benchmarking both use
// it. It sees the machine only through the timer, the monitor and the meters
// that a device brings (ops/core/device.h), so that it serves every kind, and
// its behaviour is tested against seeded noise, without hardware.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Sampling result,
//                            TakeSamples(options, *timer, *monitor));
//   if (result.outcome == proto::OK) Use(result.time_ns);
//
// It measures within one process. Evidence needs several processes: see
// suites/worker/evaluator.h.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ops/core/device.h"
#include "suites/proto/worker.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// The confidence of the interval of the median.
inline constexpr double kMedianConfidence = 0.95;

// Fewer clean samples than this are no basis for a verdict.
inline constexpr int kMinCleanSamples = 3;

proto::SamplingOptions DefaultSamplingOptions();

// Calls as long as this vary less than short ones, and what a cold start adds
// does not show in them.
inline constexpr int64_t kLongCallNs = 20'000'000;

struct Sampling {
  // OK; CENSORED: hopeless, time_ns is a lower bound; CONTENDED: too few clean
  // samples.
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  // Per call; 0 if CONTENDED. The measurement has a median all the same where
  // samples are known without their waiting for a core: see SamplesThatTell().
  double time_ns = 0;
  proto::Measurement measurement;  // all raw samples, disturbed ones marked
};

// Samples one contender, or several that are compared with each other. A sample
// holds enough calls to last options.min_sample_ns. Errors are the device's.
//
// One alone is sampled until the distribution-free 95% interval of the median
// (order statistics) is within options.target_relative_half_width of it, or
// max_samples or max_time_ns is reached; calls that are long beside max_time_ns
// get by with three samples. It goes on for options.min_time_ns at least, where
// the machine can be asked between samples what it is like
// (ops::Monitor::Calibrate), and until the second half of the samples has none
// that is faster than the first: a neighbour that comes and goes then leaves
// some samples alone. Only clean samples count: CONTENDED means that after
// max_time_ns twice over there were too few of them. (With min_time_ns, samples
// too short for their waiting to be known become longer after half of that:
// SamplesThatTell().) What is above decisive_above_ns is sampled three times,
// and once if it is a long call. `first`, if it is of a long call, is the first
// sample, and stands for the warm-up.
//
// Several are interleaved: one sample of each at a time, alternately forwards
// and backwards. What the device is like changes from one millisecond to the
// next (the clock of a GPU falls by a fifth within half a second of products),
// and is the same for all that way. Each has as many samples as the others:
// until the ratio of each to the first, sample by sample, is as precise as a
// median of one alone and min_time_ns have gone by for each on average, or
// max_samples, or max_time_ns for each. None is raced out. The first one's time
// is its median; another's is that times the median of its ratios to the first,
// also where a power limit makes every other sample half as long again, of
// which two medians may be one here and one there.
//
// `monitor` serves all.
absl::StatusOr<std::vector<Sampling>> TakeSamples(
    const proto::SamplingOptions& options, absl::Span<ops::Timer* const> timers,
    ops::Monitor& monitor, const Sampling* first = nullptr);

// The same of one.
absl::StatusOr<Sampling> TakeSamples(const proto::SamplingOptions& options,
                                     ops::Timer& timer, ops::Monitor& monitor,
                                     const Sampling* first = nullptr);

// One call, for tasks whose calls are known to be long: CENSORED if that shows
// that the config is hopeless, or above decisive_above_ns whatever a cold start
// may have added: it then need not be called again. Else OK, and a beginning
// for TakeSamples.
absl::StatusOr<Sampling> TakeFirstSample(const proto::SamplingOptions& options,
                                         ops::Timer& timer,
                                         ops::Monitor& monitor);

// The clean samples, and those that only waited for a core, for a known time
// that can be taken out. What waits for a core finds other data in its caches
// afterwards: such samples say how long the code takes, or longer.
int SamplesThatTell(const proto::Measurement& measurement);

// What a meter reads while calls run back to back for its window, or for
// `min_window` if that is longer, after they ran until the meter follows them.
// Nothing else runs meanwhile (ops::Timer::Run): flushes, restores and untimed
// calls would be in the energy and not in the time. `calls` is the batch of a
// sample. Unimplemented where the timer cannot do without them.
//
// Quickly: for `min_window` alone, after kQuickWarmUp at most. Readings of a
// search follow each other on a device that is warm, and the calibration says
// how precise a window of that length is.
inline constexpr absl::Duration kQuickWarmUp = absl::Milliseconds(200);
absl::StatusOr<proto::MeterWindow> TakeWindow(
    int64_t calls, ops::Timer& timer, ops::Meter& meter,
    absl::Duration min_window = absl::ZeroDuration(), bool quickly = false);

// Calls back to back for at least `duration`: a load to calibrate meters with.
absl::Status KeepBusy(int64_t calls, ops::Timer& timer,
                      absl::Duration duration);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_
