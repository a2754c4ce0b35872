#ifndef OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_
#define OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_

// `optrail history verify | merge` as functions, for the command line to fill
// from flags (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct HistoryVerifyCommand {
  CommonOptions common;
};
// Exit code 1 if a file is damaged; each is named.
absl::StatusOr<int> RunHistoryVerify(const HistoryVerifyCommand& options,
                                     std::ostream& out);

struct HistoryMergeCommand {
  CommonOptions common;
  std::string from;
};
absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_
