#ifndef OPTRAIL_TRACKER_DETECT_RANKS_H_
#define OPTRAIL_TRACKER_DETECT_RANKS_H_

// A test of two samples by their ranks. A piece of online.h.

#include "absl/types/span.h"

namespace optrail::tracker {

// The logarithm of the chance that exchangeable values fall as far apart, in
// either direction (Mann and Whitney 1947): of the normal approximation, or,
// where nearly all of one side lie on one side of the other, of the number of
// arrangements with so few exceptions, which is at most the number of
// partitions of 0, 1, ... that many. 0 if either side is empty.
double LogChanceOfRanks(absl::Span<const double> before,
                        absl::Span<const double> after);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_RANKS_H_
