// `optrail expect`: a change is on purpose.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/flags.h"
#include "cli/triage.h"

ABSL_FLAG(std::string, effect, "",
          "By how much the metric may change, such as +5%; by default by any "
          "amount.");

namespace optrail::cli {

suites::Command ExpectCommand() {
  suites::Command command;
  command.name = "expect";
  command.arguments = "SERIES|PATTERN COMMIT";
  command.summary = "Says that a commit changes benchmarks on purpose.";
  command.details =
      "A change beyond --effect is still reported, as new.\n"
      "\n"
      "  optrail expect 'conv2d/.*' HEAD --effect=+5% --reason='checks "
      "bounds'\n";
  command.flags = {"history", "format", "reason", "effect"};
  command.min_arguments = command.max_arguments = 2;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TriageAddCommand options = AddOptions(proto::EXPECT, arguments[0]);
    options.commit = arguments[1];
    options.effect = absl::GetFlag(FLAGS_effect);
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
