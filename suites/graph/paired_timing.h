#ifndef OPTRAIL_SUITES_GRAPH_PAIRED_TIMING_H_
#define OPTRAIL_SUITES_GRAPH_PAIRED_TIMING_H_

// TimePairs compares two ways to compute the same: a batch of each, one right
// after the other and in either order, again and again. Interference
// from the machine then meets both.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const PairedTimes times,
//                            TimePairs(*unfused, *fused, options));
//   Use(std::exp(times.evidence.log_ratio));   // unfused over fused
//
// On one thread a round compares processor time where both sides know it, so
// that waiting for a core is in no ratio; else time on the clock. The interval
// is base/stats/paired_test.h's and holds whenever the rounds end.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/stats/paired_test.h"
#include "ops/core/device.h"

namespace optrail::suites {

struct PairedTimingOptions {
  bool one_thread = true;
  // Rounds end when the interval of the ratio is within this part of it, or
  // after so much time; never before min_rounds.
  double half_width = .01;
  absl::Duration most = absl::Seconds(20);
  int min_rounds = 7;
  // Calls are batched to last as long.
  absl::Duration least_batch = absl::Milliseconds(2);
};

struct PairedTimes {
  double first_ns = 0, second_ns = 0;  // medians per call
  bool of_processor = false;           // else on the clock
  // The evidence is of log(first / second), with its interval at 95%.
  PairedEvidence evidence;

  double ratio() const;
  double low() const;
  double high() const;
};

// Errors are the timers'.
absl::StatusOr<PairedTimes> TimePairs(ops::Timer& first, ops::Timer& second,
                                      const PairedTimingOptions& options);

// "1.213x (1.206 to 1.221, 12 rounds)".
std::string RatioText(const PairedTimes& times);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_PAIRED_TIMING_H_
