#include "tuning/proto/numerics_text.h"

#include "absl/strings/str_cat.h"

namespace optrail::tuning {
namespace {

constexpr char kInvariant[] = ", batch-invariant";
constexpr char kDependent[] = ", batch-dependent";

}  // namespace

std::string NumericsText(const NumericsClass& numerics) {
  if (numerics.bits.empty() || !numerics.batch_invariant.has_value()) {
    return numerics.bits;
  }
  return absl::StrCat(numerics.bits,
                      *numerics.batch_invariant ? kInvariant : kDependent);
}

NumericsClass ParseNumerics(absl::string_view text) {
  NumericsClass numerics;
  const size_t end = text.find(',');
  numerics.bits = std::string(text.substr(0, end));
  if (end == absl::string_view::npos) return numerics;
  if (text.substr(end) == kInvariant) numerics.batch_invariant = true;
  if (text.substr(end) == kDependent) numerics.batch_invariant = false;
  return numerics;
}

bool SameBits(absl::string_view a, absl::string_view b) {
  const std::string bits = ParseNumerics(a).bits;
  return !bits.empty() && bits == ParseNumerics(b).bits;
}

bool IsBatchInvariant(absl::string_view text) {
  return ParseNumerics(text).batch_invariant.value_or(false);
}

}  // namespace optrail::tuning
