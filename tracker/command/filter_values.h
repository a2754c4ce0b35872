#ifndef OPTRAIL_TRACKER_COMMAND_FILTER_VALUES_H_
#define OPTRAIL_TRACKER_COMMAND_FILTER_VALUES_H_

// Says which flag names something that the history does not have, where no run
// or series matches what was asked for.
//
//   UnknownFilterText(all.runs, filter)
//       // "; --suite=smok: there are bert, smoke; did you mean smoke?"

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

// "" if `value` is empty or one of `known`. At most ten names are listed.
std::string UnknownValueText(absl::string_view flag, const std::string& value,
                             const std::set<std::string>& known);

// The same of --suite, --hardware and --branch, by the runs that there are.
std::string UnknownFilterText(const std::vector<RunInfo>& runs,
                              const RunFilter& filter);

// The same of --metric, a regular expression that matches whole names, by the
// series that there are.
absl::StatusOr<std::string> UnknownMetricText(const History& history,
                                              const RE2& metric);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_FILTER_VALUES_H_
