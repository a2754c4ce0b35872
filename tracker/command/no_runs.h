#ifndef OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_
#define OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_

// What `optrail show` and `optrail trace` answer where the latest run is meant,
// as it is by who names nothing, and the history has none: a session that was
// tuned a moment ago is there to be shown.
//
//   if (what == "latest") {
//     OPTRAIL_RETURN_IF_ERROR(CheckHasRuns(history, "show"));
//   }

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

// NotFound names the newest session and the command that shows it; without a
// session it says how to get a first run. Errors of reading the history are its
// own.
absl::Status CheckHasRuns(const History& history, absl::string_view command);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_
