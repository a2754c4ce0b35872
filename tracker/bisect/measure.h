#ifndef OPTRAIL_TRACKER_BISECT_MEASURE_H_
#define OPTRAIL_TRACKER_BISECT_MEASURE_H_

// How sure the mean of a few paired rounds is.
//
//   measurement.standard_error = WidenedStandardError(error, rounds);

namespace optrail::tracker {

// The standard error of a few values is itself uncertain: it is widened so that
// a normal distribution has the 95% interval of Student's t with `rounds - 1`
// degrees of freedom. `rounds` is at least 2.
double WidenedStandardError(double standard_error, int rounds);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_MEASURE_H_
