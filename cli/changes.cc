// `optrail changes`: the change points of every series.

#include <iostream>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/judge/changes_command.h"

ABSL_DECLARE_FLAG(std::string, alert_command);

ABSL_FLAG(bool, only_new, false,
          "Leave out what is acknowledged, expected or muted.");

namespace optrail::cli {

suites::Command ChangesCommand() {
  suites::Command command;
  command.name = "changes";
  command.summary = "Lists the change points of every series in the history.";
  command.details = HelpText("changes");
  command.flags = {"history",  "format",       "suite",  "hardware",
                   "branch",   "filter",       "metric", "min_effect",
                   "only_new", "alert_command"};
  command.defaults = {{"metric", ""}};
  command.meanings = {{"suite", "Only series of this suite."},
                      {"alert_command",
                       "Command that is run if the exit code is 1, with the "
                       "new changes and failures as JSON on its standard "
                       "input."}};
  command.run = [](const std::vector<std::string>&) {
    tracker::ChangesCommand options;
    options.common = TrackerOptions();
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.branch = absl::GetFlag(FLAGS_branch);
    options.filter = absl::GetFlag(FLAGS_filter);
    options.metric = absl::GetFlag(FLAGS_metric);
    options.min_effect = absl::GetFlag(FLAGS_min_effect).fraction;
    options.only_new = absl::GetFlag(FLAGS_only_new);
    options.alert_command = absl::GetFlag(FLAGS_alert_command);
    return tracker::RunChanges(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
