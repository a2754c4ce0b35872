#ifndef OPTRAIL_TRACKER_BISECT_MEASURE_H_
#define OPTRAIL_TRACKER_BISECT_MEASURE_H_

// From the paired log ratios of a few rounds to one measurement.

#include "absl/types/span.h"
#include "tracker/bisect/noisy_bisection.h"

namespace optrail::tracker {

// The standard error of a few values is itself uncertain: it is widened so that
// a normal distribution has the 95% interval of Student's t with `rounds - 1`
// degrees of freedom. `rounds` is at least 2.
double WidenedStandardError(double standard_error, int rounds);

// Mean and widened standard error of at least two values.
BisectMeasurement Summarise(absl::Span<const double> log_ratios);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_MEASURE_H_
