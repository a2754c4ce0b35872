#ifndef OPTRAIL_TRACKER_TRACE_TRACE_COMMAND_H_
#define OPTRAIL_TRACKER_TRACE_TRACE_COMMAND_H_

// `optrail trace` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct TraceCommand {
  CommonOptions common;
  // A session id, or a run (History::Resolve).
  std::string what = "latest";
  std::string out;  // path of the file; "" or "-": standard output
};

// 0, or 3 where the record holds nothing that was timed.
absl::StatusOr<int> RunTrace(const TraceCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRACE_TRACE_COMMAND_H_
