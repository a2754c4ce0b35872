#ifndef OPTRAIL_REPORTS_JSON_REPORT_H_
#define OPTRAIL_REPORTS_JSON_REPORT_H_

// The report for programs: everything that the page shows, with names and units
// spelled out and nothing left out or rounded. docs/reference/report.md lists
// the fields.
//
//   {"schema": 1, "title": ..., "verdicts": {"slower": 3, ...},
//    "series": [{"name": ..., "verdict": "slower", "points": [...]}, ...]}
//
// Fields are only added; "schema" changes when one changes its meaning.

#include <string>

#include "reports/report_data.h"

namespace optrail::reports {

// The same data gives the same bytes. Pure ASCII; unknown numbers are null.
std::string WriteJsonReport(const ReportData& data);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_JSON_REPORT_H_
