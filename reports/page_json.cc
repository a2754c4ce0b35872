#include "reports/page_json.h"

#include <cmath>
#include <cstdint>

namespace optrail::reports {

Json Number(absl::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const int digits =
      4 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (digits <= 0) {
    const double unit = std::pow(10.0, -digits);
    const double rounded = std::round(value / unit) * unit;
    if (std::fabs(rounded) < 1e15) return static_cast<int64_t>(rounded);
    return rounded;
  }
  if (digits > 300) return value;
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

Json Rounded(absl::optional<double> value) {
  return value ? Rounded(*value) : Json(nullptr);
}

Json PageCommitJson(const Commit& commit) {
  return {commit.id.substr(0, 12),
          commit.subject.substr(0, 160),
          commit.unix_ns / 1000000000,
          commit.position ? Json(*commit.position) : Json(nullptr),
          commit.dirty ? 1 : 0,
          commit.branch};
}

}  // namespace optrail::reports
