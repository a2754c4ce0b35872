// `optrail ack`, `expect`, `mute` and `note`: what people say of changes.
// `optrail triage` lists it, or takes it back.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_split.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/triage/triage_command.h"

ABSL_FLAG(std::string, reason, "", "Why; it is kept and shown.");
ABSL_FLAG(bool, only_active, false, "Leave out what is undone or expired.");
ABSL_FLAG(std::string, effect, "",
          "By how much the metric may change, such as +5%; by default by any "
          "amount.");
ABSL_FLAG(std::string, until, "",
          "The last day, such as 2026-12-24 (UTC), that is muted.");

namespace optrail::cli {
namespace {

// Somebody says something of benchmarks: of a commit, where it is the second
// argument, and why in the third or by --reason.
suites::Command AddCommand(proto::TriageKind kind, std::string name,
                           std::string arguments, std::string summary) {
  suites::Command command;
  command.name = std::move(name);
  command.min_arguments = command.max_arguments = static_cast<int>(
      std::vector<std::string>(absl::StrSplit(arguments, ' ')).size());
  command.arguments = std::move(arguments);
  command.summary = std::move(summary);
  command.run = [kind](const std::vector<std::string>& given) {
    tracker::TriageAddCommand options;
    options.common = TrackerOptions();
    options.kind = kind;
    options.scope = given[0];
    if (given.size() > 1) options.commit = given[1];
    options.text = given.size() > 2 ? given[2] : absl::GetFlag(FLAGS_reason);
    options.effect = absl::GetFlag(FLAGS_effect);
    options.until = absl::GetFlag(FLAGS_until);
    return tracker::RunTriageAdd(options, std::cout);
  };
  return command;
}

}  // namespace

suites::Command AckCommand() {
  suites::Command command =
      AddCommand(proto::ACKNOWLEDGE, "ack", "SERIES|PATTERN COMMIT",
                 "Acknowledges a change: it is not reported as new again.");
  command.details = HelpText("ack");
  command.flags = {"history", "format", "reason"};
  return command;
}

suites::Command ExpectCommand() {
  suites::Command command =
      AddCommand(proto::EXPECT, "expect", "SERIES|PATTERN COMMIT",
                 "Says that a commit changes benchmarks on purpose.");
  command.details = HelpText("expect");
  command.flags = {"history", "format", "reason", "effect"};
  return command;
}

suites::Command MuteCommand() {
  suites::Command command =
      AddCommand(proto::MUTE, "mute", "SERIES|PATTERN",
                 "Keeps benchmarks quiet until the end of a day.");
  command.details = HelpText("mute");
  command.flags = {"history", "format", "reason", "until"};
  return command;
}

suites::Command NoteCommand() {
  suites::Command command =
      AddCommand(proto::NOTE, "note", "SERIES|PATTERN COMMIT TEXT",
                 "Puts a note beside a commit; it judges nothing.");
  command.details = HelpText("note");
  command.flags = {"history", "format"};
  return command;
}

suites::Command TriageCommand() {
  suites::Command command;
  command.name = "triage";
  command.arguments = "[list|undo ID]";
  command.summary = "Lists the answers to changes, or takes one back.";
  command.details = HelpText("triage");
  command.parts = {
      Part("list", "", "Lists the answers; what `optrail triage` alone does.",
           {"history", "format", "only_active"}, 0, 0,
           [](const std::vector<std::string>&) {
             tracker::TriageListCommand options;
             options.common = TrackerOptions();
             options.only_active = absl::GetFlag(FLAGS_only_active);
             return tracker::RunTriageList(options, std::cout);
           }),
      Part("undo", "ID", "Takes an answer back.",
           {"history", "format", "reason"}, 1, 1,
           [](const std::vector<std::string>& ids) {
             tracker::TriageUndoCommand options;
             options.common = TrackerOptions();
             options.id = ids[0];
             options.reason = absl::GetFlag(FLAGS_reason);
             return tracker::RunTriageUndo(options, std::cout);
           })};
  command.default_part = "list";
  return command;
}

}  // namespace optrail::cli
