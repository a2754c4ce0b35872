// Makes a report of a large history by the command's own code, and prints its
// time on the clock, its processor time and the most memory that it took.
//
//   bazel run -c opt //reports/evaluation:report_scale --
//       --history=/path/to/history --out=/tmp/report.html
//
// Words beside the flags are passed over, so that history_scale takes it in
// place of the command line: --optrail=/path/to/report_scale.

#include <sys/resource.h>

#include <ctime>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "reports/commands.h"

ABSL_FLAG(std::string, history, "", "The history, a folder or a URL.");
ABSL_FLAG(std::string, out, "", "The page.");

namespace optrail::reports {
namespace {

int Main() {
  ReportCommand options;
  options.history = absl::GetFlag(FLAGS_history);
  options.history_is_named = true;
  options.out = absl::GetFlag(FLAGS_out);
  const int64_t start_ns = Clock::Real()->NowNs();
  const auto code = RunReport(options, std::cerr, std::cout);
  const double wall_s =
      static_cast<double>(Clock::Real()->NowNs() - start_ns) * 1e-9;
  if (!code.ok()) {
    std::cerr << "report_scale: " << code.status().message() << "\n";
    return 1;
  }
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::cerr << absl::StrFormat(
      "report: %.2f s, processor time %.2f s, most memory %.0f MiB\n", wall_s,
      static_cast<double>(std::clock()) / CLOCKS_PER_SEC,
      static_cast<double>(usage.ru_maxrss) / 1024);
  return *code;
}

}  // namespace
}  // namespace optrail::reports

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return optrail::reports::Main();
}
