// `optrail bisect`: the commit that made a benchmark slower.

#include <iostream>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/shared_machine.h"
#include "fleet/fleet_looks.h"
#include "fleet/queue.h"
#include "tracker/bisect/bisect_command.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/worktree.h"

ABSL_FLAG(int32_t, rounds, 6,
          "Rounds of one measurement of a commit between GOOD and BAD.");
ABSL_FLAG(optrail::Percentage, confidence, {.98},
          "Probability of a commit at which the search ends.");
ABSL_FLAG(int32_t, nodes, 0,
          "Commits to measure at once, as tasks of the fleet of --history; 0: "
          "this machine measures.");
ABSL_FLAG(std::string, look, "",
          "Measure once and print that as JSON, as --nodes asks pilots: ends "
          "(GOOD and BAD until it is clear), or commit (--rounds of them).");

ABSL_DECLARE_FLAG(absl::Duration, task_time);
ABSL_DECLARE_FLAG(int32_t, priority);

namespace optrail::cli {
namespace {

std::vector<std::string> FlagsOfLooks() {
  return Together({{"filter", "metric", "min_effect", "false_alarm_rate",
                    "max_rounds", "rounds", "seed"},
                   BuildFlags()});
}

// Those of them that are not the default, as a pilot gets them.
std::vector<std::string> FlagsForPilots() {
  std::vector<std::string> given;
  for (const std::string& name : FlagsOfLooks()) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    if (flag->CurrentValue() == flag->DefaultValue()) continue;
    given.push_back(absl::StrCat("--", name, "=", flag->CurrentValue()));
  }
  return given;
}

const std::vector<std::string>& AllFlags() {
  static const auto* const flags = new std::vector<std::string>(
      Together({{"format", "confidence", "quiet", "nodes", "history",
                 "hardware", "task_time", "priority", "look"},
                FlagsOfLooks()}));
  return *flags;
}

// A look by itself leaves --history unheeded, but pilots give it to every task.
suites::FlagUse FlagsUsed(const std::vector<std::string>&) {
  if (absl::GetFlag(FLAGS_nodes) != 0) {
    return suites::UseAllBut("with --nodes, where pilots look", AllFlags(),
                             {"look"});
  }
  std::vector<std::string> unused = {"hardware", "task_time", "priority"};
  if (absl::GetFlag(FLAGS_look).empty()) unused.push_back("history");
  return suites::UseAllBut("without --nodes=K", AllFlags(), unused);
}

absl::StatusOr<tracker::BisectLook> LookFromFlag() {
  const std::string look = absl::GetFlag(FLAGS_look);
  if (look.empty()) return tracker::BisectLook::kNone;
  if (look == "ends") return tracker::BisectLook::kEnds;
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(look == "commit", "look", look, "ends or commit"));
  return tracker::BisectLook::kCommit;
}

absl::StatusOr<int> BisectOnNodes(const tracker::BisectCommand& command) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string url, FleetUrl());
  OPTRAIL_ASSIGN_OR_RETURN(fleet::JobQueue queue, fleet::JobQueue::Open(url));
  tracker::Interruptible interruptible;
  OPTRAIL_ASSIGN_OR_RETURN(const auto trees,
                           tracker::Worktrees::Create(
                               {command.common.workspace, ""}, interruptible));
  fleet::FleetLooksOptions options;
  options.at_once = absl::GetFlag(FLAGS_nodes);
  options.hardware_id = absl::GetFlag(FLAGS_hardware);
  options.flags = FlagsForPilots();
  options.arguments = command.build.args;
  options.priority = absl::GetFlag(FLAGS_priority);
  options.time_limit = absl::GetFlag(FLAGS_task_time);
  options.may_go_on = [&interruptible] { return interruptible.Check(); };
  if (!command.quiet) {
    options.say = [](const std::string& what) { std::cerr << what << "\n"; };
  }
  fleet::FleetLooks looks(std::move(options), std::move(queue));
  return tracker::RunBisectBy(command, *trees, looks, std::cout);
}

}  // namespace

suites::Command BisectCommand() {
  suites::Command command;
  command.name = "bisect";
  command.arguments = "GOOD BAD [-- ARGUMENTS]";
  command.summary = "Finds the commit that made a benchmark slower.";
  command.details = HelpText("bisect");
  command.flags = AllFlags();
  command.use = FlagsUsed;
  command.meanings = {
      {"filter", "Only benchmarks whose name this regular expression matches."},
      {"metric",
       "The metric that got worse: a regular expression that matches "
       "its whole name."},
      {"seed", "Seed of the order in which the two sides run."},
      {"history", "The database of the fleet, for --nodes."},
      {"hardware",
       "With --nodes: id of the hardware that measures; by default that of "
       "the pilot that compares GOOD and BAD."},
      {"task_time", "With --nodes: most time of one look."},
      {"priority", "With --nodes: looks of a higher priority go first."}};
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
    OPTRAIL_ASSIGN_OR_RETURN(options.look, LookFromFlag());
    const int32_t nodes = absl::GetFlag(FLAGS_nodes);
    OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
        nodes >= 0 && nodes <= 1000, "nodes", nodes, "a number up to 1000"));
    if (nodes > 0) return BisectOnNodes(options);
    AdviseMetricIfShared();
    return tracker::RunBisect(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
