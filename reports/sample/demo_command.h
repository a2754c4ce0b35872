#ifndef OPTRAIL_REPORTS_SAMPLE_DEMO_COMMAND_H_
#define OPTRAIL_REPORTS_SAMPLE_DEMO_COMMAND_H_

// `optrail demo`: a small history of made-up runs with every verdict in it, and
// its report, for people who want to look before they measure.
//
//   DemoCommand options;
//   options.out = "optrail_demo";
//   absl::StatusOr<int> exit_code = RunDemo(options, std::cout, std::cerr);

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"

namespace optrail::reports {

struct DemoCommand {
  std::string out = "optrail_demo";  // a folder, empty if it exists
};

// Writes out/history and out/report.html, and prints to `out` what to look at
// next. Returns the exit code 0. Errors: AlreadyExists if there is such a
// folder and it is not empty, and what writing gives.
absl::StatusOr<int> RunDemo(const DemoCommand& options, std::ostream& out,
                            std::ostream& log);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_DEMO_COMMAND_H_
