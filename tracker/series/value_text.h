#ifndef OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_
#define OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::tracker {

// A metric's value for people: "1.23 ms", "456 bytes"; "-" for none.
std::string FormatValue(absl::optional<double> value, absl::string_view unit);

// The word for a change of a metric's value is "slower" or "faster" for a
// benchmark's time and cpu_time, "higher" or "lower" for any other metric.
//
//   FormatPercent(std::abs(change)) + " " + ChangeWord(change, "time")
absl::string_view ChangeWord(double relative_change, absl::string_view metric);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_
