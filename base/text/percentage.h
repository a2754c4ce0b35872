#ifndef OPTRAIL_BASE_TEXT_PERCENTAGE_H_
#define OPTRAIL_BASE_TEXT_PERCENTAGE_H_

// A fraction as people type it: "3%", "+5%", "-2.5%" or ".03".
//
//   ABSL_FLAG(Percentage, min_effect, Percentage{.03}, "...");
//   const double fraction = absl::GetFlag(FLAGS_min_effect).fraction;
//
// A number of 1 or more without "%" is refused: "3" might be 3% or 300%.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail {

struct Percentage {
  double fraction = 0;
};

// InvalidArgument says what was expected.
absl::StatusOr<double> ParsePercentage(absl::string_view text);

// For flags of that type; "3%" for .03.
bool AbslParseFlag(absl::string_view text, Percentage* percentage,
                   std::string* error);
std::string AbslUnparseFlag(Percentage percentage);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_PERCENTAGE_H_
