#ifndef OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_
#define OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_

// `optrail history merge` as a function, for the command line to fill
// from flags (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct HistoryMergeCommand {
  CommonOptions common;
  std::string from;
  bool accept_removals = false;  // MergeOptions
};
// Exit code 1 if files of the other history are damaged and were not copied.
absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_HISTORY_COMMAND_H_
