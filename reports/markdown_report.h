#ifndef OPTRAIL_REPORTS_MARKDOWN_REPORT_H_
#define OPTRAIL_REPORTS_MARKDOWN_REPORT_H_

// The report in a page of Markdown, for a pull request or a job's summary:
// counts, what wants attention, tuned against default.
//
// It is not the gate's table (tracker/gate/gate.h), which judges a pull
// request.

#include <string>

#include "reports/report_data.h"

namespace optrail::reports {

struct MarkdownReportOptions {
  int max_rows = 20;  // per table; the rest is counted
};

std::string WriteMarkdownReport(const ReportData& data,
                                const MarkdownReportOptions& options = {});

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_MARKDOWN_REPORT_H_
