// `optrail suite`: the whole line for a workload: tune what the store lacks,
// benchmark, record, report.

#include "cli/suite.h"

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "cli/embedded_texts.h"
#include "reports/commands.h"
#include "suites/command/commands.h"

ABSL_FLAG(std::string, report, "",
          "Where to write the HTML report; by default "
          ".optrail/reports/WORKLOAD.html in the workspace.");

namespace optrail::cli {
namespace {

absl::StatusOr<int> Suite(const std::string& workload) {
  OPTRAIL_ASSIGN_OR_RETURN(const suites::SuiteResult result,
                           suites::RunSuite(workload));
  reports::ReportCommand report;
  report.history = result.context.history;
  const std::string path = absl::GetFlag(FLAGS_report);
  report.out = path.empty()
                   ? JoinPath(WorkspaceDirectory(), ".optrail/reports",
                              absl::StrCat(FileNameOf(workload), ".html"))
                   : JoinPath(WorkingDirectory(), path);
  report.title = absl::StrCat("Optrail: ", workload);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(report.out)));
  OPTRAIL_ASSIGN_OR_RETURN(const int unused,
                           reports::RunReport(report, std::cerr));
  (void)unused;
  std::cerr << "next: open " << EscapeForTerminal(report.out)
            << " in a browser, then\n  optrail suite "
            << QuoteForShell(workload)
            << "   # after a change: another point of each trend\n"
               "  optrail compare latest~1 latest   # what the change did\n"
               "  optrail tune --workload="
            << QuoteForShell(workload)
            << " --retune --total_time=5m   # a longer search\n";
  if (result.exit_code == ExitCode::kCheckFailed) {
    std::cerr << "some benchmarks failed; the table says which\n";
  } else if (result.exit_code == ExitCode::kNotEnoughData) {
    std::cerr << "the machine was too busy for some benchmarks; the table says "
                 "which\n";
  }
  return ToInt(result.exit_code);
}

}  // namespace

suites::Command SuiteCommand() {
  suites::Command command;
  command.name = "suite";
  command.arguments = "WORKLOAD";
  command.summary = "Tunes, benchmarks, records and reports a workload.";
  command.details = HelpText("suite");
  command.flags = suites::SuiteFlags();
  command.flags.push_back("report");
  command.min_arguments = 1;
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    return Suite(arguments[0]);
  };
  return command;
}

}  // namespace optrail::cli
