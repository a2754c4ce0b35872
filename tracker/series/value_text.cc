#include "tracker/series/value_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"

namespace optrail::tracker {

std::string FormatValue(absl::optional<double> value, absl::string_view unit) {
  if (!value) return "-";
  if (unit == "ns") return FormatDurationNs(*value);
  return absl::StrCat(absl::StrFormat("%.4g", *value), unit.empty() ? "" : " ",
                      unit);
}

}  // namespace optrail::tracker
