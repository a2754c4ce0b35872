#include "tracker/detect/noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

// Normal noise has 0.6745 of its standard deviation as its median distance.
constexpr double kMadToSigma = 1.4826;
// How far the measured loss is tabulated, in scales.
constexpr double kDensityReach = 8;
constexpr double kKernelScales = 0.3;
constexpr int kLongestMemory = 30;
constexpr double kLeastCorrelation = 0.1;

int32_t ToLossUnits(double loss) {
  return static_cast<int32_t>(std::lround(loss * kLossUnit));
}

}  // namespace

double PowerOfTwoUnit(absl::Span<const double> values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  if (largest == 0) return 1;
  int exponent;
  std::frexp(largest, &exponent);
  return std::ldexp(1, exponent - 1);
}

double DifferenceScale(absl::Span<const double> values) {
  if (values.size() < 2) return 0;
  std::vector<double> distances;
  distances.reserve(values.size() - 1);
  for (size_t i = 1; i < values.size(); ++i) {
    distances.push_back(values[i] - values[i - 1]);
  }
  double sum = 0;
  for (const double d : distances) sum += std::abs(d);
  const double mean = sum / distances.size();
  const double center = Median(distances);
  for (double& d : distances) d = std::abs(d - center);
  const double median = Median(distances);
  if (median > 0) return kMadToSigma * median / std::sqrt(2.0);
  return mean * std::sqrt(M_PI) / 2;  // E|x - y| is 2 sigma / sqrt(pi)
}

double ResidualScale(absl::Span<const double> residuals) {
  if (residuals.empty()) return 0;
  std::vector<double> distances;
  distances.reserve(residuals.size());
  for (const double r : residuals) distances.push_back(std::abs(r));
  return kMadToSigma * Median(distances);
}

std::vector<double> SegmentResiduals(absl::Span<const double> values,
                                     absl::Span<const int> changes) {
  std::vector<double> residuals(values.begin(), values.end());
  size_t begin = 0;
  for (size_t k = 0; k <= changes.size(); ++k) {
    const size_t end = k < changes.size() ? changes[k] : values.size();
    const double median = Median(values.subspan(begin, end - begin));
    for (size_t i = begin; i < end; ++i) residuals[i] -= median;
    begin = end;
  }
  return residuals;
}

double VarianceInflation(absl::Span<const double> residuals, double scale) {
  const size_t n = residuals.size();
  std::vector<double> clipped(n);
  double power = 0;
  for (size_t i = 0; i < n; ++i) {
    clipped[i] = std::clamp(residuals[i], -3 * scale, 3 * scale);
    power += clipped[i] * clipped[i];
  }
  if (power <= 0) return 1;
  double inflation = 1;
  const size_t longest = std::min<size_t>(kLongestMemory, n / 4);
  for (size_t lag = 1; lag <= longest; ++lag) {
    double product = 0;
    for (size_t i = lag; i < n; ++i) product += clipped[i] * clipped[i - lag];
    const double correlation = product / power;
    if (correlation < kLeastCorrelation) break;
    inflation += 2 * correlation;
  }
  return inflation;
}

double NeighbourCorrelation(absl::Span<const double> residuals, double scale) {
  double product = 0, power = 0, previous = 0;
  for (const double r : residuals) {
    const double clipped = std::clamp(r, -scale, scale);
    product += clipped * previous;
    power += clipped * clipped;
    previous = clipped;
  }
  return power > 0 ? product / power : 0;
}

std::vector<double> ClipResiduals(absl::Span<const double> values,
                                  absl::Span<const double> residuals,
                                  double limit) {
  std::vector<double> clipped(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    clipped[i] =
        values[i] - residuals[i] + std::clamp(residuals[i], -limit, limit);
  }
  return clipped;
}

std::vector<int32_t> TruncatedQuadraticLoss(double cells_per_scale,
                                            double cap) {
  const int reach =
      static_cast<int>(std::ceil(std::sqrt(cap) * cells_per_scale));
  std::vector<int32_t> loss(2 * reach + 1);
  for (int d = -reach; d <= reach; ++d) {
    const double distance = d / cells_per_scale;
    loss[reach + d] = ToLossUnits(std::min(cap, distance * distance));
  }
  return loss;
}

std::vector<int32_t> DensityLoss(absl::Span<const double> residuals,
                                 double scale, double cells_per_scale,
                                 double cap) {
  const int reach = static_cast<int>(kDensityReach * cells_per_scale);
  const int size = 2 * reach + 1;
  // A histogram with each residual shared between its two nearest cells...
  std::vector<double> counts(size, 0.0);
  for (const double r : residuals) {
    const double cell = r / scale * cells_per_scale + reach;
    if (!(cell >= 0 && cell < size - 1)) continue;
    const int below = static_cast<int>(cell);
    counts[below] += 1 - (cell - below);
    counts[below + 1] += cell - below;
  }
  // ... smoothed.
  const double kernel_cells = kKernelScales * cells_per_scale;
  const int kernel_reach = static_cast<int>(std::ceil(4 * kernel_cells));
  std::vector<double> kernel(2 * kernel_reach + 1);
  for (int d = -kernel_reach; d <= kernel_reach; ++d) {
    kernel[kernel_reach + d] =
        std::exp(-0.5 * (d / kernel_cells) * (d / kernel_cells));
  }
  std::vector<double> density(size, 0.0);
  for (int i = 0; i < size; ++i) {
    if (counts[i] == 0) continue;
    const int low = std::max(-kernel_reach, -i);
    const int high = std::min(kernel_reach, size - 1 - i);
    for (int d = low; d <= high; ++d) {
      density[i + d] += counts[i] * kernel[kernel_reach + d];
    }
  }
  const double highest = *std::max_element(density.begin(), density.end());
  std::vector<int32_t> loss(size, ToLossUnits(cap));
  const double least = highest * std::exp(-cap / 2);
  for (int i = 0; i < size; ++i) {
    if (density[i] > least) {
      loss[i] = ToLossUnits(
          std::clamp(-2 * std::log(density[i] / highest), 0.0, cap));
    }
  }
  // Points beyond the table cost what its ends cost.
  loss.front() = loss.back() = ToLossUnits(cap);
  return loss;
}

}  // namespace optrail::tracker
