// `optrail ack`: a change is known.

#include <iostream>

#include "cli/flags.h"
#include "cli/triage.h"

namespace optrail::cli {

suites::Command AckCommand() {
  suites::Command command;
  command.name = "ack";
  command.arguments = "SERIES|PATTERN COMMIT";
  command.summary = "Acknowledges a change: it is not reported as new again.";
  command.details =
      "A series is named as `optrail changes` prints it; anything else is a\n"
      "regular expression that matches the whole name of benchmarks.\n"
      "\n"
      "  optrail ack 'matmul/.*' 1a2b3c4 --reason='known, issue filed'\n";
  command.flags = {"history", "format", "reason"};
  command.min_arguments = command.max_arguments = 2;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TriageAddCommand options =
        AddOptions(proto::ACKNOWLEDGE, arguments[0]);
    options.commit = arguments[1];
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
