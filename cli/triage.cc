// What people say about changes: ack, expect, mute, note, triage, changes.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "cli/flags.h"
#include "tracker/triage/triage_command.h"

ABSL_FLAG(std::string, reason, "", "Why; it is kept and shown.");
ABSL_FLAG(std::string, effect, "",
          "By how much the metric may change, such as +5%; by default by any "
          "amount.");
ABSL_FLAG(std::string, until, "",
          "The last day, such as 2026-12-24 (UTC), that is muted.");
ABSL_FLAG(bool, only_new, false,
          "Leave out what is acknowledged, expected or muted.");
ABSL_FLAG(bool, only_active, false, "Leave out what is undone or expired.");

ABSL_DECLARE_FLAG(std::string, hardware);
ABSL_DECLARE_FLAG(std::string, branch);
ABSL_DECLARE_FLAG(std::string, filter);
ABSL_DECLARE_FLAG(std::string, metric);
ABSL_DECLARE_FLAG(double, min_effect);

namespace optrail::cli {
namespace {

using suites::Command;

tracker::TriageAddCommand AddOptions(proto::TriageKind kind,
                                     const std::string& scope) {
  tracker::TriageAddCommand options;
  options.common = TrackerOptions();
  options.kind = kind;
  options.scope = scope;
  options.text = absl::GetFlag(FLAGS_reason);
  return options;
}

}  // namespace

Command AckCommand() {
  Command command;
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

Command ExpectCommand() {
  Command command;
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

Command MuteCommand() {
  Command command;
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

Command NoteCommand() {
  Command command;
  command.name = "note";
  command.arguments = "SERIES|PATTERN COMMIT TEXT";
  command.summary = "Puts a note beside a commit; it judges nothing.";
  command.details =
      "  optrail note 'softmax/.*' HEAD~3 'new compiler from here on'\n";
  command.flags = {"history", "format"};
  command.min_arguments = command.max_arguments = 3;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::TriageAddCommand options = AddOptions(proto::NOTE, arguments[0]);
    options.commit = arguments[1];
    options.text = arguments[2];
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

Command TriageCommand() {
  Command command;
  command.name = "triage";
  command.arguments = "[undo ID]";
  command.summary =
      "Lists what was acknowledged, expected, muted and noted, or takes one "
      "back.";
  command.details =
      "Nothing is ever deleted: undo adds a record, which can be undone "
      "too.\n";
  command.flags = {"history", "format", "only_active", "reason"};
  command.max_arguments = 2;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    if (arguments.empty()) {
      tracker::TriageListCommand options;
      options.common = TrackerOptions();
      options.only_active = absl::GetFlag(FLAGS_only_active);
      return tracker::RunTriageList(options, std::cout);
    }
    if (arguments[0] == "undo" && arguments.size() == 2) {
      tracker::TriageUndoCommand options;
      options.common = TrackerOptions();
      options.id = arguments[1];
      options.reason = absl::GetFlag(FLAGS_reason);
      return tracker::RunTriageUndo(options, std::cout);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", arguments[0],
                     "\": expected nothing, or undo and the id of a record"));
  };
  return command;
}

Command ChangesCommand() {
  Command command;
  command.name = "changes";
  command.summary = "Lists the change points of every series in the history.";
  command.details =
      "Exit code 1: there is a change for the worse of at least "
      "--min_effect\n"
      "that is confirmed and new, that is not acknowledged, expected or "
      "muted.\n"
      "A provisional change may still be withdrawn and is never an error.\n"
      "\n"
      "  optrail changes --branch=main --only_new\n";
  command.flags = {"history", "format", "suite",      "hardware", "branch",
                   "filter",  "metric", "min_effect", "only_new"};
  command.run = [](const std::vector<std::string>&) {
    tracker::ChangesCommand options;
    options.common = TrackerOptions();
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.branch = absl::GetFlag(FLAGS_branch);
    options.filter = absl::GetFlag(FLAGS_filter);
    options.metric = absl::GetFlag(FLAGS_metric);
    options.min_effect = absl::GetFlag(FLAGS_min_effect);
    options.only_new = absl::GetFlag(FLAGS_only_new);
    return tracker::RunChanges(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
