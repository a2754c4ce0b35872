#ifndef OPTRAIL_TRACKER_DETECT_PLACE_H_
#define OPTRAIL_TRACKER_DETECT_PLACE_H_

// Places where a step may lie: the commits that may have made it. A piece of
// detect.h.

#include "absl/types/span.h"

namespace optrail::tracker {

struct PlaceRange {
  int earliest = 0;
  int latest = 0;  // included
};

// The smallest range of places for the step's first point that holds `middle`
// and, with both levels taken as known and no place preferred beforehand, 95%
// of the probability: a place k has weight exp(-cost(k) / 2), where
//
//   cost(k) = sum of loss(x_t - before) for t < k
//             + sum of loss(x_t - after) for t >= k
//   loss(d) = min(16, d^2 / variance)
//
// so that an outlier beside the step doesn't decide it. `variance` is that of
// the noise times, if it has memory, its inflation: neighbours that repeat each
// other count less. Places range over [1, values.size()), no further than 100
// from `middle`, which must be one of them.
PlaceRange RangeOfPlaces(absl::Span<const double> values, int middle,
                         double before, double after, double variance);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_PLACE_H_
