// `optrail convergence`: what is wrong with tuning sessions, and the remedy.

#include <iostream>

#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/convergence/convergence_command.h"

ABSL_FLAG(std::vector<std::string>, fail_on, {},
          "Findings that make the exit code 1, such as "
          "does_not_converge,tuner_worse; or all.");

namespace optrail::cli {

suites::Command ConvergenceCommand() {
  suites::Command command;
  command.name = "convergence";
  command.summary = "Says what went wrong in tuning sessions, and the remedy.";
  command.details = HelpText("convergence");
  command.flags = {"history", "format",  "hardware",
                   "filter",  "fail_on", "policy"};
  command.meanings = {
      {"hardware", "Only sessions of the hardware with this id."},
      {"filter", "Only sessions whose task this regular expression matches."},
      {"policy",
       "Policy file whose fail_on_finding names findings that make "
       "the exit code 1."}};
  command.run = [](const std::vector<std::string>&) {
    tracker::ConvergenceCommand options;
    options.common = TrackerOptions();
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.filter = absl::GetFlag(FLAGS_filter);
    options.fail_on = absl::GetFlag(FLAGS_fail_on);
    options.policy = UserPath(absl::GetFlag(FLAGS_policy));
    return tracker::RunConvergence(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
