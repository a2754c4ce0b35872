#ifndef OPTRAIL_REPORTS_COMMANDS_H_
#define OPTRAIL_REPORTS_COMMANDS_H_

// `optrail report` as a function, for the command line to fill from flags.
//
//   ReportCommand options;
//   options.history = ".optrail/history";
//   options.out = "report.html";
//   absl::StatusOr<int> exit_code = RunReport(options, std::cerr);

#include <iostream>
#include <string>

#include "absl/status/statusor.h"

namespace optrail::reports {

struct ReportCommand {
  std::string history = ".optrail/history";
  // Somebody named it: a folder that is not there is an error then.
  bool history_is_named = false;
  // The file to write, atomically; "-" writes to standard output (not a PDF).
  std::string out = "report.html";
  // "html", "markdown", "json", "pdf"; "": as the name of `out` ends, else
  // html.
  std::string format;
  std::string title = "Optrail report";
};

// Writes the report and says to `log` where it is; `out` is what standard
// output is to mean. A history without data gives a report that says so;
// damaged files are skipped and named in the report. Returns the exit code 0.
// Errors: a history that cannot be read, a file that cannot be written, an
// unknown format, and Unimplemented ("unsupported here: chromium not found")
// for a PDF where no Chromium is installed.
absl::StatusOr<int> RunReport(const ReportCommand& options, std::ostream& log,
                              std::ostream& out = std::cout);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_COMMANDS_H_
