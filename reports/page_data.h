#ifndef OPTRAIL_REPORTS_PAGE_DATA_H_
#define OPTRAIL_REPORTS_PAGE_DATA_H_

// The data that the HTML page carries: a compact JSON text, in columns and with
// rounded numbers, which reports/ui/*.js reads. It is a private contract
// between this file and those; the public JSON is reports/json_report.h.

#include <cstdint>
#include <string>

#include "reports/report_data.h"

namespace optrail::reports {

// How much there is to draw.
struct PageCounts {
  int64_t series = 0;
  int64_t points = 0;
  int64_t processes = 0;  // SeriesView::process_count
};
PageCounts CountsOf(const ReportData& data);

// How many points of a series PageJson draws, as a rule: fewer where the text
// turns out to be too large.
int PointsPerSeries(const PageCounts& counts, int64_t max_bytes);

// JSON that is inert inside an HTML script element: it holds no '<', '>' or '&'
// and is pure ASCII; invalid UTF-8 becomes U+FFFD. The same data gives the same
// bytes.
//
// Points and trials are left out evenly (reports/pick_points.h) until the text
// is at most `max_bytes`; the page says how many. Should even the fewest points
// be too large, the smallest text possible is returned.
std::string PageJson(const ReportData& data, int64_t max_bytes);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_DATA_H_
