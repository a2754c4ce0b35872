// `optrail triage`: lists what people said, or takes it back.

#include "cli/triage.h"

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "cli/flags.h"

ABSL_FLAG(std::string, reason, "", "Why; it is kept and shown.");
ABSL_FLAG(bool, only_active, false, "Leave out what is undone or expired.");

namespace optrail::cli {

tracker::TriageAddCommand AddOptions(proto::TriageKind kind,
                                     const std::string& scope) {
  tracker::TriageAddCommand options;
  options.common = TrackerOptions();
  options.kind = kind;
  options.scope = scope;
  options.text = absl::GetFlag(FLAGS_reason);
  return options;
}

suites::Command TriageCommand() {
  suites::Command command;
  command.name = "triage";
  command.arguments = "[undo ID]";
  command.summary = "Lists the answers to changes, or takes one back.";
  command.details =
      "What was acknowledged, expected, muted and noted. Nothing is ever "
      "deleted:\n"
      "undo adds a record, which can be undone too.\n";
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

}  // namespace optrail::cli
