#ifndef OPTRAIL_TRACKER_WATCH_WATCH_COMMAND_H_
#define OPTRAIL_TRACKER_WATCH_WATCH_COMMAND_H_

// `optrail watch` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).
//
// It measures the commits of a range that the history lacks, newest first, and
// records each as it is done: killed at any moment, the next call goes on. A
// commit that does not build or whose run fails is reported, remembered and not
// tried again unless that is asked for.
//
// Exit codes: 0, also where commits were skipped; 3 where none of those that
// were tried could be measured.

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/checkout/commit_builder.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

struct WatchCommand {
  CommonOptions common;
  std::string range = "HEAD";  // "v1.2..HEAD", or a name: all that lead to it
  // `trees.repository` and `quiet` are filled in; `trees.folder` is kept.
  BuildOptions build;
  std::string suite;   // with the hardware it says which runs fill a gap
  std::string branch;  // "": as git says
  proto::Hardware hardware;
  int processes = 5;  // of each commit
  int limit = 0;      // most commits to measure now; 0: all
  bool retry_failed = false;
  bool dry_run = false;  // say what would be measured
  bool quiet = false;
};

absl::StatusOr<int> RunWatch(const WatchCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_WATCH_WATCH_COMMAND_H_
