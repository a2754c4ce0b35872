#include "tracker/series/value_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/units.h"

namespace optrail::tracker {

std::string FormatValue(absl::optional<double> value, absl::string_view unit) {
  if (!value) return "-";
  if (unit == "ns") return FormatDurationNs(*value);
  return absl::StrCat(absl::StrFormat("%.4g", *value), unit.empty() ? "" : " ",
                      unit);
}

absl::string_view ChangeWord(double relative_change, absl::string_view metric) {
  if (metric == "time" || metric == "cpu_time") {
    return relative_change > 0 ? "slower" : "faster";
  }
  return relative_change > 0 ? "higher" : "lower";
}

}  // namespace optrail::tracker
