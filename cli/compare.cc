// `optrail compare`: two runs, commits, files or programs.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/compare/compare_command.h"

ABSL_FLAG(optrail::Percentage, detect_effect, {.05},
          "A worsening of this size must be excluded before a benchmark is "
          "\"unchanged\"; see the glossary for the column \"detectable\".");
ABSL_FLAG(bool, only_changes, false, "Leave unchanged benchmarks out.");

namespace optrail::cli {
namespace {

// How rows are judged without a policy.
std::vector<std::string> JudgeFlags() {
  return {"metric", "min_effect", "detect_effect", "false_alarm_rate",
          "only_changes"};
}

suites::FlagUse FlagsUsed(const std::vector<std::string>&) {
  const std::vector<std::string> always = {"history", "format", "filter"};
  const bool commits = absl::GetFlag(FLAGS_commits);
  if (!commits && !absl::GetFlag(FLAGS_binaries)) {
    return {
        "without --binaries or --commits, which measure; `optrail gate` "
        "judges what is in the history",
        Together({always, JudgeFlags(), {"suite", "hardware"}})};
  }
  suites::FlagUse use;
  use.call =
      commits ? "with --commits" : "with --binaries, which builds nothing";
  use.flags =
      Together({always,
                {"binaries", "commits", "max_rounds", "policy", "markdown_out",
                 "record", "seed", "quiet", "process_deadline"}});
  if (commits) use.flags = Together({use.flags, BuildFlags()});
  if (absl::GetFlag(FLAGS_policy).empty()) {
    use.flags = Together({use.flags, JudgeFlags()});
  } else {
    absl::StrAppend(&use.call, ", and with --policy, which says it");
  }
  if (absl::GetFlag(FLAGS_record)) {
    use.flags = Together({use.flags, {"suite", "hardware"}});
  } else {
    absl::StrAppend(&use.call, ", and without --record");
  }
  return use;
}

}  // namespace

suites::Command CompareCommand() {
  suites::Command command;
  command.name = "compare";
  command.arguments = "[A [B [-- ARGUMENTS]]]";
  command.summary = "Compares two runs, commits, result files or programs.";
  command.details = HelpText("compare");
  command.flags =
      Together({{"history", "format", "filter", "suite", "hardware"},
                JudgeFlags(),
                {"binaries", "commits", "max_rounds", "policy", "markdown_out",
                 "record", "seed", "quiet"},
                BuildFlags()});
  command.meanings = {
      {"suite",
       "Only this suite; with --record, the name of what is recorded."},
      {"hardware",
       "Only this hardware; with --record, the id that is "
       "recorded."},
      {"record",
       "With --binaries or --commits: keep both sides in the "
       "history."},
      {"policy", "With --binaries or --commits: judge by this policy file."},
      {"markdown_out",
       "With --binaries or --commits: a Markdown file for the "
       "pull request."},
      {"seed", "Seed of the order in which the two sides run."}};
  command.instead = {{"candidate", "the arguments A and B name the sides"},
                     {"baseline", "the arguments A and B name the sides"}};
  command.use = FlagsUsed;
  command.max_arguments = -1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    const bool binaries = absl::GetFlag(FLAGS_binaries);
    const bool commits = absl::GetFlag(FLAGS_commits);
    if (binaries && commits) {
      return absl::InvalidArgumentError(
          "--binaries and --commits: expected one of them");
    }
    if (binaries || commits) {
      tracker::AbCommand options;
      options.common = TrackerOptions();
      options.filter = absl::GetFlag(FLAGS_filter);
      options.metric = absl::GetFlag(FLAGS_metric);
      options.min_effect = absl::GetFlag(FLAGS_min_effect).fraction;
      options.detect_effect = absl::GetFlag(FLAGS_detect_effect).fraction;
      options.false_alarm_rate = absl::GetFlag(FLAGS_false_alarm_rate).fraction;
      options.only_changes = absl::GetFlag(FLAGS_only_changes);
      return CompareByRunning(std::move(options), arguments, commits);
    }
    if (arguments.size() > 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("compare takes [A [B]], but ", arguments.size(),
                       " arguments were given; arguments for programs need "
                       "--binaries or --commits"));
    }
    tracker::CompareCommand options;
    options.common = TrackerOptions();
    if (arguments.size() > 0) options.a = arguments[0];
    if (arguments.size() > 1) options.b = arguments[1];
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    OPTRAIL_ASSIGN_OR_RETURN(options.machine, ThisMachine());
    options.filter = absl::GetFlag(FLAGS_filter);
    options.metric = absl::GetFlag(FLAGS_metric);
    options.min_effect = absl::GetFlag(FLAGS_min_effect).fraction;
    options.detect_effect = absl::GetFlag(FLAGS_detect_effect).fraction;
    options.false_alarm_rate = absl::GetFlag(FLAGS_false_alarm_rate).fraction;
    options.only_changes = absl::GetFlag(FLAGS_only_changes);
    return tracker::RunCompare(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
