// `optrail show`: one run, session or series.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/command/show_command.h"

namespace optrail::cli {

suites::Command ShowCommand() {
  suites::Command command;
  command.name = "show";
  command.arguments = "[RUN|COMMIT|SESSION|SERIES]";
  command.summary = "Shows one run, tuning session or series.";
  command.details = HelpText("show");
  command.flags = {"history", "format", "filter"};
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::ShowCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.what = arguments[0];
    options.filter = absl::GetFlag(FLAGS_filter);
    return tracker::RunShow(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
