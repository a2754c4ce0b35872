#ifndef OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_
#define OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::tracker {

// A metric's value for people: "1.23 ms", "456 bytes"; "-" for none.
std::string FormatValue(absl::optional<double> value, absl::string_view unit);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_VALUE_TEXT_H_
