// `optrail bisect`: the commit that made a benchmark slower.

#include <iostream>

#include "absl/flags/flag.h"
#include "base/git.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/shared_machine.h"
#include "tracker/bisect/bisect_command.h"

ABSL_FLAG(int32_t, rounds, 6,
          "Rounds of one measurement of a commit between GOOD and BAD.");
ABSL_FLAG(optrail::Percentage, confidence, {.98},
          "Probability of a commit at which the search ends.");

namespace optrail::cli {

suites::Command BisectCommand() {
  suites::Command command;
  command.name = "bisect";
  command.arguments = "GOOD BAD [-- ARGUMENTS]";
  command.summary = "Finds the commit that made a benchmark slower.";
  command.details = HelpText("bisect");
  command.flags =
      Together({{"format", "filter", "metric", "min_effect", "false_alarm_rate",
                 "max_rounds", "rounds", "confidence", "seed", "quiet"},
                BuildFlags()});
  command.meanings = {
      {"filter", "Only benchmarks whose name this regular expression matches."},
      {"metric",
       "The metric that got worse: a regular expression that matches "
       "its whole name."},
      {"seed", "Seed of the order in which the two sides run."}};
  command.min_arguments = 2;
  command.max_arguments = -1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    tracker::BisectCommand options;
    OPTRAIL_ASSIGN_OR_RETURN(
        options.build,
        BuildOptionsFromFlags({arguments.begin() + 2, arguments.end()}));
    options.common.format = absl::GetFlag(FLAGS_format);
    options.common.workspace = WorkspaceDirectory();
    options.good = arguments[0];
    options.bad = arguments[1];
    options.filter = absl::GetFlag(FLAGS_filter);
    options.metric = absl::GetFlag(FLAGS_metric);
    options.min_effect = absl::GetFlag(FLAGS_min_effect).fraction;
    options.false_alarm_rate = absl::GetFlag(FLAGS_false_alarm_rate).fraction;
    options.max_rounds = absl::GetFlag(FLAGS_max_rounds);
    options.rounds = absl::GetFlag(FLAGS_rounds);
    options.confidence = absl::GetFlag(FLAGS_confidence).fraction;
    options.seed = absl::GetFlag(FLAGS_seed);
    options.quiet = absl::GetFlag(FLAGS_quiet);
    AdviseMetricIfShared();
    return tracker::RunBisect(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
