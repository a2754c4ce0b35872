#ifndef OPTRAIL_TRACKER_DETECT_SUDDEN_H_
#define OPTRAIL_TRACKER_DETECT_SUDDEN_H_

// A step that a level shows within a few points. A piece of online.h.

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tracker/detect/detect.h"

namespace optrail::tracker {

// A change in the last few of `values`, all points since the last shift, where
// the level before was known from enough points and steady, as
// docs/method/detection.md defines it. Places of the result count within
// `values`.
absl::optional<ChangePoint> FindSudden(absl::Span<const double> values);

// Returns whether the values since a provisional change, at least 4, lie so far
// beyond those of the level before, at least 5, that somebody must know before
// it is confirmed: each is further from their median than 1.5 (1 + 12 / points)
// times the farthest of the last 60.
bool StandApart(absl::Span<const double> before,
                absl::Span<const double> since);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_SUDDEN_H_
