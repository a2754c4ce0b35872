#ifndef OPTRAIL_TRACKER_JUDGE_CHANGES_COMMAND_H_
#define OPTRAIL_TRACKER_JUDGE_CHANGES_COMMAND_H_

// `optrail changes` as a function, for the command line to fill from flags
// (command_support.h says how).

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tracker/judge/judge.h"

namespace optrail::tracker {

// `optrail changes`: exit code 1 where there is a change for the worse that is
// new, at least `min_effect`, and confirmed or standing apart from all noise.
struct ChangesCommand {
  CommonOptions common;
  std::string suite, hardware_id, branch;
  std::string filter;  // RE2 on benchmark names
  // RE2, matches whole names. "": time or, of a benchmark without one, all.
  std::string metric;
  // Smaller changes are not shown and set no exit code. How a series stands is
  // decided at kLeastEffect (beside.h) whatever is shown.
  double min_effect = kLeastEffect;
  bool only_new = false;
  // Run where the exit code is 1, with the rows that made it so on its standard
  // input, as --format=json prints them. Its failure is logged and changes
  // nothing.
  std::string alert_command;
};
absl::StatusOr<int> RunChanges(const ChangesCommand& options,
                               std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_CHANGES_COMMAND_H_
