#ifndef OPTRAIL_TRACKER_TRIAGE_TRIAGE_COMMAND_H_
#define OPTRAIL_TRACKER_TRIAGE_TRIAGE_COMMAND_H_

// The commands of triage as functions, for the command line to fill from flags
// (command_support.h says how).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tracker/proto/triage.pb.h"

namespace optrail::tracker {

// `optrail ack`, `expect`, `mute` and `note`: adds one record and prints it.
struct TriageAddCommand {
  CommonOptions common;
  proto::TriageKind kind = proto::ACKNOWLEDGE;
  std::string scope;   // a series or a pattern
  std::string commit;  // any name that git knows; not for MUTE
  std::string text;    // the reason or the note; must not be empty
  std::string effect;  // EXPECT: "+5%"; empty: any
  std::string until;   // MUTE: "2026-12-24", the last muted day (UTC)
};
absl::StatusOr<int> RunTriageAdd(const TriageAddCommand& options,
                                 std::ostream& out);

// `optrail triage`: every record and whether it still counts.
struct TriageListCommand {
  CommonOptions common;
  bool only_active = false;
};
absl::StatusOr<int> RunTriageList(const TriageListCommand& options,
                                  std::ostream& out);

// `optrail triage undo ID`: adds a record that takes another one back.
struct TriageUndoCommand {
  CommonOptions common;
  std::string id;      // or the beginning of one
  std::string reason;  // may be empty
};
absl::StatusOr<int> RunTriageUndo(const TriageUndoCommand& options,
                                  std::ostream& out);

// `optrail changes`: exit code 1 where there is a change for the worse that is
// new, confirmed and at least `min_effect`.
struct ChangesCommand {
  CommonOptions common;
  std::string suite, hardware_id, branch;
  std::string filter;           // RE2 on benchmark names
  std::string metric = "time";  // RE2, matches whole names
  double min_effect = .03;      // smaller changes are not shown
  bool only_new = false;
  // Run where the exit code is 1, with the rows that made it so on its standard
  // input, as --format=json prints them. That it fails is said and changes
  // nothing.
  std::string alert_command;
};
absl::StatusOr<int> RunChanges(const ChangesCommand& options,
                               std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRIAGE_TRIAGE_COMMAND_H_
