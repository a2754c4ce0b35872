#ifndef OPTRAIL_TRACKER_COMPARE_ROBUST_H_
#define OPTRAIL_TRACKER_COMPARE_ROBUST_H_

// Levels and spreads that a few wild values do not move (Huber, "Robust
// Statistics", 1981).
//
//   const double level = HuberLocation(logs, /*scale=*/.01);
//   const double variance = WinsorisedVariance(deviations);
//
// They are estimates, no tests: see noise_model.h for what is made of them.

#include "absl/types/span.h"

namespace optrail::tracker {

// The M-estimate of location with Huber's psi and a known scale: the mean of
// values that agree to within 1.5 scales, close to the median of others. NaN
// without values.
double HuberLocation(absl::Span<const double> values, double scale);

// The weight of a value in HuberLocation: 1 for those that agree, less for
// those far off.
double HuberWeight(double deviation, double scale);

// Huber's proposal 2 about zero: the variance of deviations that are pulled in
// to 2.5 standard deviations, consistent for normal ones. 0 without values.
double WinsorisedVariance(absl::Span<const double> deviations);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_ROBUST_H_
