// `optrail trace`: a session or run as a timeline for trace viewers.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/flags.h"
#include "tracker/trace/trace_command.h"

namespace optrail::cli {

suites::Command TraceCommand() {
  suites::Command command;
  command.name = "trace";
  command.arguments = "[RUN|SESSION]";
  command.summary = "Writes a run or a session as a timeline.";
  command.details =
      "Chrome's trace JSON, which ui.perfetto.dev and speedscope.app open: "
      "what\n"
      "was compiled, loaded, checked and sampled when, and which samples were\n"
      "disturbed. By default the latest run; `optrail log sessions` prints "
      "the\n"
      "ids of sessions. docs/guide/trace.md says what is recorded and what is\n"
      "placed by a rule. Exit code 3: the record holds nothing that was "
      "timed.\n"
      "\n"
      "  optrail trace --out=trace.json\n"
      "  optrail trace 20261120T103000Z-6b5a4c3d2e1f --out=trace.json\n";
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
