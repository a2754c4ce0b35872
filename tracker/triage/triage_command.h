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

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRIAGE_TRIAGE_COMMAND_H_
