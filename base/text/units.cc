#include "base/text/units.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optrail {
namespace {

// Three significant digits, without an exponent.
std::string ThreeDigits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95) return absl::StrFormat("%.0f", value);
  if (magnitude >= 9.995) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

// Scales by `base` until what ThreeDigits shows stays below it.
template <size_t kCount>
std::string Scaled(double value, double base,
                   const char* const (&prefixes)[kCount],
                   absl::string_view unit) {
  if (!std::isfinite(value)) return absl::StrFormat("%g %s", value, unit);
  size_t i = 0;
  while (i + 1 < kCount && std::abs(value) >= base - 0.5) {
    value /= base;
    ++i;
  }
  return absl::StrCat(ThreeDigits(value), " ", prefixes[i], unit);
}

}  // namespace

std::string FormatDurationNs(double ns) {
  if (!std::isfinite(ns)) return absl::StrFormat("%g ns", ns);
  if (ns < 0) return absl::StrCat("-", FormatDurationNs(-ns));
  constexpr double kSecond = 1e9;
  if (ns >= 3599.5 * kSecond) {
    const int64_t minutes = std::llround(ns / kSecond / 60);
    return absl::StrCat(minutes / 60, " h ", minutes % 60, " min");
  }
  if (ns >= 99.95 * kSecond) {
    const int64_t seconds = std::llround(ns / kSecond);
    return absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
  }
  if (ns > 0 && ns < 0.9995) return absl::StrFormat("%.3f ns", ns);
  static constexpr const char* kPrefixes[] = {"n", "u", "m", ""};
  return Scaled(ns, 1000, kPrefixes, "s");
}

std::string FormatBytes(double bytes) {
  if (std::abs(bytes) < 1024 && bytes == std::floor(bytes)) {
    return absl::StrFormat("%.0f B", bytes);
  }
  static constexpr const char* kPrefixes[] = {"",   "Ki", "Mi", "Gi",
                                              "Ti", "Pi", "Ei"};
  return Scaled(bytes, 1024, kPrefixes, "B");
}

std::string FormatRate(double per_second, absl::string_view unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  return Scaled(per_second, 1000, kPrefixes, unit);
}

std::string FormatCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const int64_t first = count < 0 ? 1 : 0;
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

std::string FormatPercent(double fraction, int decimals) {
  std::string text = absl::StrFormat("%.*f%%", decimals, 100 * fraction);
  // Rounded to nothing, it has no sign.
  if (text[0] == '-' && text.find_first_of("123456789in") == text.npos) {
    text.erase(0, 1);
  }
  return text;
}

std::string FormatChange(double fraction, int decimals) {
  return absl::StrFormat("%+.*f%%", decimals, 100 * fraction);
}

std::string FormatShortPercent(double fraction, int digits) {
  const double percent = 100 * fraction;
  // From here on, %g would write an exponent.
  const bool long_whole = std::abs(percent) >= std::pow(10, digits) - .5;
  return long_whole ? FormatPercent(fraction, 0)
                    : absl::StrFormat("%.*g%%", digits, percent);
}

}  // namespace optrail
