#ifndef OPTRAIL_REPORTS_MARKDOWN_REPORT_H_
#define OPTRAIL_REPORTS_MARKDOWN_REPORT_H_

// The report in a page of Markdown, for a pull request or a job's summary:
// counts, what wants attention, tuned against default.
//
// It is not the gate's table (tracker/gate.h), which judges a pull request.

#include <string>

#include "absl/strings/string_view.h"
#include "reports/report_data.h"

namespace optrail::reports {

struct MarkdownReportOptions {
  int max_rows = 20;  // per table; the rest is counted
};

std::string WriteMarkdownReport(const ReportData& data,
                                const MarkdownReportOptions& options = {});

// `text` so that Markdown and HTML show it as it is, on one line, also in a
// table: names may be hostile. Control characters and those that change the
// direction of text become U+FFFD.
std::string EscapeMarkdown(absl::string_view text);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_MARKDOWN_REPORT_H_
