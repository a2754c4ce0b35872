// `optrail report`: what the history holds, to look at.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "reports/commands.h"

ABSL_FLAG(std::string, report_format, "",
          "html, markdown, json or pdf; by default as the name of --out ends.");
ABSL_FLAG(std::string, title, "Optrail report", "Heading of the report.");

namespace optrail::cli {

suites::Command ReportCommand() {
  suites::Command command;
  command.name = "report";
  command.summary =
      "Writes a report of the history: HTML, Markdown, JSON, PDF.";
  command.details = HelpText("report");
  command.flags = {"history", "out", "report_format", "title"};
  command.defaults = {{"out", "report.html"}};
  command.meanings = {{"out", "File to write; - is standard output."}};
  command.run = [](const std::vector<std::string>&) {
    reports::ReportCommand options;
    options.history = HistoryFolder();
    options.history_is_named = !absl::GetFlag(FLAGS_history).empty();
    options.out = UserPath(absl::GetFlag(FLAGS_out));
    options.format = absl::GetFlag(FLAGS_report_format);
    options.title = absl::GetFlag(FLAGS_title);
    return reports::RunReport(options, std::cerr);
  };
  return command;
}

}  // namespace optrail::cli
