#include "tracker/compare/robust.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/stats/distributions.h"
#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

constexpr double kTuning = 1.5;  // of the location: 96% efficient
constexpr double kClip = 2.5;    // of the variance
constexpr int kMostIterations = 50;

// E min(z^2, kClip^2) of a standard normal z.
double Consistency() {
  const double density =
      std::exp(-kClip * kClip / 2) / std::sqrt(2 * std::acos(-1.));
  const double inside = 2 * NormalCdf(kClip) - 1;
  return inside - 2 * kClip * density + kClip * kClip * (1 - inside);
}

}  // namespace

double HuberWeight(double deviation, double scale) {
  const double bound = kTuning * scale;
  return std::abs(deviation) <= bound ? 1 : bound / std::abs(deviation);
}

double HuberLocation(absl::Span<const double> values, double scale) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double location = Median(values);
  for (int i = 0; i < kMostIterations; ++i) {
    double sum = 0, total = 0;
    for (const double value : values) {
      const double weight = HuberWeight(value - location, scale);
      sum += weight * value;
      total += weight;
    }
    const double next = sum / total;
    const bool settled = std::abs(next - location) < 1e-4 * scale;
    location = next;
    if (settled) break;
  }
  return location;
}

double WinsorisedVariance(absl::Span<const double> deviations) {
  if (deviations.empty()) return 0;
  std::vector<double> sizes;
  double mean_square = 0;
  for (const double deviation : deviations) {
    sizes.push_back(std::abs(deviation));
    mean_square += deviation * deviation / deviations.size();
  }
  double variance = std::pow(1.4826 * Median(sizes), 2);
  // More than half are equal: nothing robust can be said.
  if (variance == 0) return mean_square;
  static const double consistency = Consistency();
  for (int i = 0; i < kMostIterations; ++i) {
    double sum = 0;
    for (const double size : sizes) {
      sum += std::min(size * size, kClip * kClip * variance);
    }
    const double next = sum / sizes.size() / consistency;
    const bool settled = std::abs(next - variance) < 1e-4 * variance;
    variance = next;
    if (settled) break;
  }
  return variance;
}

}  // namespace optrail::tracker
