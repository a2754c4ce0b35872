#ifndef OPTRAIL_REPORTS_PAGE_OVERVIEW_H_
#define OPTRAIL_REPORTS_PAGE_OVERVIEW_H_

// The part of the page's data (page_data.h) that sums up all series: cells,
// pairs of tuned and default, the matrix of hardware, what wants attention.

#include "reports/overview.h"
#include "reports/report_json.h"

namespace optrail::reports {

Json PageOverviewJson(const Overview& overview);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_OVERVIEW_H_
