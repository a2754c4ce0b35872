#ifndef OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_
#define OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_

// The one stopwatch: decides how many calls make a sample, how many samples are
// enough, and which of them were disturbed. Tuning and benchmarking both use
// it. It sees the machine only through two small interfaces, so that its
// behaviour is tested against seeded noise, without hardware.
//
//   const Sampling result = TakeSamples(options, timer, monitor);
//   if (result.outcome == proto::OK) Use(result.time_ns);
//
// It measures within one process. Evidence needs several processes: see
// suites/worker/evaluator.h.

#include <cstdint>

#include "ops/core/device.h"
#include "suites/proto/worker.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

// The code under measurement.
class CallTimer {
 public:
  virtual ~CallTimer() = default;

  // Makes `calls` calls back to back and returns their wall time. What must
  // happen outside the timed region (flushing caches, restoring operands) is
  // done here, before the clock starts.
  virtual int64_t TimeCallsNs(int64_t calls) = 0;

  // Upper limit of calls per sample: 1 with cold caches, the number of
  // prefilled operand sets for a kernel that works in place.
  virtual int64_t max_calls() const { return int64_t{1} << 30; }
};

// Of the interval of the median.
inline constexpr double kMedianConfidence = 0.95;

// Fewer clean samples than this are no basis for a verdict.
inline constexpr int kMinCleanSamples = 3;

proto::SamplingOptions DefaultSamplingOptions();

struct Sampling {
  // OK; CENSORED: hopeless, time_ns is a lower bound; CONTENDED: too few clean
  // samples.
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  double time_ns = 0;              // per call; 0 if CONTENDED
  proto::Measurement measurement;  // all raw samples, disturbed ones marked
};

// A sample holds enough calls to last options.min_sample_ns; sampling goes on
// until the distribution-free 95% interval of the median (order statistics) is
// within options.target_relative_half_width of it, or max_samples or
// max_time_ns is reached; calls that are long beside max_time_ns get by with
// three samples. Only clean samples count: CONTENDED means that after
// max_time_ns twice over there were too few of them.
Sampling TakeSamples(const proto::SamplingOptions& options, CallTimer& timer,
                     ops::Monitor& monitor);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_STOPWATCH_STOPWATCH_H_
