#include "tracker/judge/levels.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

constexpr double kMedianError = 1.2533;  // of a median over that of a mean

}  // namespace

Levels LevelsOf(std::vector<double> before, std::vector<double> after,
                double inflation) {
  Levels levels;
  levels.before = Median(before);
  levels.after = Median(after);
  const double n = static_cast<double>(before.size());
  const double m = static_cast<double>(after.size());
  for (double& value : before) value -= levels.before;
  for (const double value : after) before.push_back(value - levels.after);
  levels.error =
      kMedianError * MedianAbsoluteDeviation(before) *
      std::sqrt(std::min(inflation, n) / n + std::min(inflation, m) / m);
  return levels;
}

absl::optional<double> LogOfValue(const Point& point) {
  if (!point.value || !(*point.value > 0)) return absl::nullopt;
  return std::log(*point.value);
}

ChangePoint ChangeOfLogs(const Levels& levels, int index) {
  ChangePoint change;
  change.index = change.earliest = change.latest = index;
  change.level_before = std::exp(levels.before);
  change.level_after = std::exp(levels.after);
  const double shift = levels.after - levels.before;
  const double margin = 1.96 * levels.error;
  change.confidence =
      levels.error > 0 ? std::erf(std::abs(shift) / levels.error / std::sqrt(2))
                       : 1;
  change.relative_change = std::expm1(shift);
  change.relative_change_low = std::expm1(shift - margin);
  change.relative_change_high = std::expm1(shift + margin);
  return change;
}

}  // namespace optrail::tracker
