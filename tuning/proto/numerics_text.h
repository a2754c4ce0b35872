#ifndef OPTRAIL_TUNING_PROTO_NUMERICS_TEXT_H_
#define OPTRAIL_TUNING_PROTO_NUMERICS_TEXT_H_

// A numerics class as it stands in stores and reports: a hash of the bits of
// results on fixed inputs, and, where that was tested, whether a row's bits
// depend on how many rows a call computes.
//
//   NumericsText({"0f3a11c2d4e5", true});  // "0f3a11c2d4e5, batch-invariant"
//   if (SameBits(tuned.numerics(), tuned.default_numerics())) {
//     // The config changes no bit of the results.
//   }

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::tuning {

struct NumericsClass {
  std::string bits;  // 12 hexadecimal digits; "": nobody knows the class
  absl::optional<bool> batch_invariant;  // nullopt: it was not tested
};

// "" where the bits are unknown.
std::string NumericsText(const NumericsClass& numerics);
NumericsClass ParseNumerics(absl::string_view text);

// To which classes a search is limited, as --numerics and TunedConfig's
// numerics_limit name it.
inline constexpr char kClassOfDefault[] = "class-of-default";
inline constexpr char kBatchInvariantOnly[] = "batch-invariant";

// Both are known, and equal.
bool SameBits(absl::string_view a, absl::string_view b);
// True if that was tested and found.
bool IsBatchInvariant(absl::string_view text);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_NUMERICS_TEXT_H_
