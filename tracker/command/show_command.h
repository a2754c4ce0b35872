#ifndef OPTRAIL_TRACKER_COMMAND_SHOW_COMMAND_H_
#define OPTRAIL_TRACKER_COMMAND_SHOW_COMMAND_H_

// `optrail show` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct ShowCommand {
  CommonOptions common;
  // A run or commit (History::Resolve), a session id, or the canonical text of
  // a series.
  std::string what = "latest";
  std::string filter;  // RE2 on benchmark names
};
absl::StatusOr<int> RunShow(const ShowCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_SHOW_COMMAND_H_
