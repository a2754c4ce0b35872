#ifndef OPTRAIL_TRACKER_DETECT_SUDDEN_H_
#define OPTRAIL_TRACKER_DETECT_SUDDEN_H_

// A step that a steady level shows within a few points. A piece of online.h.

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tracker/detect/detect.h"

namespace optrail::tracker {

// A change in the last few of `values`, all points since the last shift, where
// the level before was known from enough points and steady, as
// docs/method/detection.md defines it. Places of the result count within
// `values`.
absl::optional<ChangePoint> FindSudden(absl::Span<const double> values);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_SUDDEN_H_
