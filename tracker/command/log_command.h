#ifndef OPTRAIL_TRACKER_COMMAND_LOG_COMMAND_H_
#define OPTRAIL_TRACKER_COMMAND_LOG_COMMAND_H_

// `optrail log` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct LogCommand {
  CommonOptions common;
  std::string what = "runs";  // "runs", "sessions", "series"
  std::string suite, hardware_id, branch, commit;
  std::string filter;  // RE2 on tasks or series; not for runs
  int limit = 20;      // newest; 0: all
};
absl::StatusOr<int> RunLog(const LogCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_LOG_COMMAND_H_
