#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_OPEN_METRICS_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_OPEN_METRICS_H_

// The newest value of each series as OpenMetrics text, which Prometheus and
// other monitoring systems read.
//
//   OPTRAIL_RETURN_IF_ERROR(
//       ExportOpenMetrics(*index, {}, std::cout).status());
//
// Times are gauges in seconds, sizes in bytes, and everything else is a gauge
// with its unit as a label. Two more families say for each series when its
// newest point was measured, and of which commit. Series without a value are
// left out.
//
// Source: https://github.com/prometheus/OpenMetrics, specification 1.0.0.

#include <cstdint>
#include <iosfwd>

#include "absl/status/statusor.h"
#include "tracker/history/index/history_index.h"

namespace optrail::tracker {

// The number of series written.
absl::StatusOr<int64_t> ExportOpenMetrics(HistoryIndex& index,
                                          const SeriesFilter& filter,
                                          std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_OPEN_METRICS_H_
