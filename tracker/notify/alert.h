#ifndef OPTRAIL_TRACKER_NOTIFY_ALERT_H_
#define OPTRAIL_TRACKER_NOTIFY_ALERT_H_

// The alert hook: any command, with JSON on its standard input.
//
//   absl::Status said = RunAlert("mail -s slower team@example.org", json);
//   if (!said.ok()) std::cerr << "note: " << said.message() << "\n";
//
// It is for telling somebody. What it does never changes a verdict.

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace optrail::tracker {

// Runs `command` with sh; its output goes to standard error. A command that
// fails, or has not ended by `deadline` and is killed, is an error that says
// how and quotes its last words.
absl::Status RunAlert(const std::string& command, const std::string& json,
                      absl::Duration deadline = absl::Minutes(1));

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_ALERT_H_
