#include "base/text/percentage.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optrail {

absl::StatusOr<double> ParsePercentage(absl::string_view text) {
  absl::string_view number = absl::StripAsciiWhitespace(text);
  const bool is_percent = absl::ConsumeSuffix(&number, "%");
  double value;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        "expected a percentage such as 3%, or a fraction such as .03");
  }
  if (is_percent) return value / 100;
  if (std::abs(value) < 1) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a percentage such as 3%, or a fraction below 1; is ", value,
      "% meant?"));
}

bool AbslParseFlag(absl::string_view text, Percentage* percentage,
                   std::string* error) {
  const absl::StatusOr<double> fraction = ParsePercentage(text);
  if (!fraction.ok()) {
    *error = std::string(fraction.status().message());
    return false;
  }
  percentage->fraction = *fraction;
  return true;
}

std::string AbslUnparseFlag(Percentage percentage) {
  // Six digits, so that 100 * .07 is 7.
  return absl::StrCat(100 * percentage.fraction, "%");
}

}  // namespace optrail
