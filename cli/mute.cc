// `optrail mute`: benchmarks are quiet for a while.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/flags.h"
#include "cli/triage.h"

ABSL_FLAG(std::string, until, "",
          "The last day, such as 2026-12-24 (UTC), that is muted.");

namespace optrail::cli {

suites::Command MuteCommand() {
  suites::Command command;
  command.name = "mute";
  command.arguments = "SERIES|PATTERN";
  command.summary = "Keeps benchmarks quiet until the end of a day.";
  command.details =
      "  optrail mute 'attention/.*' --until=2026-12-24 --reason='new disk'\n";
  command.flags = {"history", "format", "reason", "until"};
  command.min_arguments = command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TriageAddCommand options = AddOptions(proto::MUTE, arguments[0]);
    options.until = absl::GetFlag(FLAGS_until);
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
