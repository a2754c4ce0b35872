// `optrail trace`: a session or run as a timeline for trace viewers.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/trace/trace_command.h"

namespace optrail::cli {

suites::Command TraceCommand() {
  suites::Command command;
  command.name = "trace";
  command.arguments = "[RUN|SESSION]";
  command.summary = "Writes a run or a session as a timeline.";
  command.details = HelpText("trace");
  command.flags = {"history", "out"};
  command.meanings = {{"out", "File to write; none: standard output."}};
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TraceCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.what = arguments[0];
    options.out = UserPath(absl::GetFlag(FLAGS_out));
    return tracker::RunTrace(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
