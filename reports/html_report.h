#ifndef OPTRAIL_REPORTS_HTML_REPORT_H_
#define OPTRAIL_REPORTS_HTML_REPORT_H_

// The report as one HTML file that needs nothing else: style, script, Apache
// ECharts and the data are inside, so it opens from disk, from a CI service's
// artifacts and from a mail.
//
//   OPTRAIL_RETURN_IF_ERROR(
//       WriteFileAtomically("report.html", WriteHtmlReport(data, {})));
//
// Names in the data may be hostile: they travel as JSON that cannot end its
// element and enter the page as text. A content security policy allows exactly
// the two scripts of the file, by their hashes, and no network.
//
// It is not a template engine and takes no themes; the page's own sources are
// reports/ui/.

#include <cstdint>
#include <string>

#include "reports/report_data.h"

namespace optrail::reports {

struct HtmlReportOptions {
  // The file stays below this by leaving out points of long series and trials
  // of long sessions (never the newest, never a change point).
  int64_t max_bytes = 5'800'000;
};

// How many bytes of the page are left for what it shows (page_data.h).
int64_t DataBytes(const std::string& title,
                  const HtmlReportOptions& options = {});

// The same data gives the same bytes. Data without series and sessions gives a
// page that says so and how to record some.
std::string WriteHtmlReport(const ReportData& data,
                            const HtmlReportOptions& options = {});

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_HTML_REPORT_H_
