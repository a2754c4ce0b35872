#ifndef OPTRAIL_TRACKER_SERIES_LABELS_H_
#define OPTRAIL_TRACKER_SERIES_LABELS_H_

// Labels of results (BenchmarkResult.labels) that say more than a text.

namespace optrail::tracker {

// Begins the label of a result whose tuned config was measured with another
// kernel than the one that ran.
inline constexpr char kUnverifiedLabel[] = "unverified config";

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_LABELS_H_
