#ifndef OPTRAIL_REPORTS_PAGE_SESSIONS_H_
#define OPTRAIL_REPORTS_PAGE_SESSIONS_H_

// Tuning sessions and workloads as the page carries them. This is a piece of
// page_data.h; reports/ui/sections/tuning.js and workloads.js read it.

#include "reports/report_data.h"
#include "reports/report_json.h"

namespace optrail::reports {

// At most about `limit` trials. `operator_index` is the page's.
Json PageSessionJson(const ReportData& data, const TuningSession& session,
                     int operator_index, int limit);

// Times in ns, 0 where there are none.
Json PageWorkloadJson(const ReportData& data, const WorkloadView& workload);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_SESSIONS_H_
