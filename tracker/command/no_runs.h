#ifndef OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_
#define OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_

// CheckHasRuns is the answer of `optrail show` and `optrail trace` where the
// latest run was asked for, or nothing was named, and the history has no run:
// a session that was tuned a moment ago is there to be shown.
//
//   if (absl::IsNotFound(run.status())) {
//     OPTRAIL_RETURN_IF_ERROR(CheckHasRuns(history, "latest", "show"));
//   }

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

// NotFound names the newest session and the command that shows it; without a
// session it says how to get a first run. OK for a selector other than
// "latest" and "latest~N". Reads all records, so ask where no run was found.
// Errors of reading the history are its own.
absl::Status CheckHasRuns(const History& history, absl::string_view selector,
                          absl::string_view command);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_NO_RUNS_H_
