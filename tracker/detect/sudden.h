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

// Returns whether the values since a provisional change lie so far beyond those
// of the level before that somebody must know before it is confirmed. Each is
// further from their median than K (1 + 12 / points before) times the farthest
// of the last 60: K is 6 for two values after at least 10, 3 for three after 8,
// 1.5 for more after 5. One value never stands apart.
bool StandApart(absl::Span<const double> before,
                absl::Span<const double> since);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_SUDDEN_H_
