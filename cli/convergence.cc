// `optrail convergence`: what is wrong with tuning sessions, and the remedy.

#include <iostream>

#include "absl/flags/flag.h"
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
  command.details =
      "Judges each session of the history, and those of the same task against\n"
      "each other: did the search converge, is its winner real, did the tuner\n"
      "get worse? docs/method/convergence.md defines each finding. --filter "
      "matches\n"
      "tasks; a policy file may name findings too (fail_on_finding). Exit "
      "codes:\n"
      "1 one of the findings that are to fail, 3 there is no session to "
      "judge.\n"
      "\n"
      "  optrail convergence\n"
      "  optrail convergence --fail_on=tuner_worse,most_trials_fail\n";
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
