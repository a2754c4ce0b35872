#include "tracker/compare/steps.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

constexpr double kThreshold = 4.5;   // standard errors
constexpr double kPriorDegrees = 4;  // of `expected`
constexpr int kShortest = 2;
// A step is at least that many standard deviations of one value: a slow drift
// of a long series is none.
constexpr double kLeastStep = 2;

// From neighbours, so that steps do not count, and never less than what the
// whole says where it says less.
double Scale(absl::Span<const double> values, double expected) {
  std::vector<double> differences, deviations;
  const double center = Median(values);
  for (size_t i = 0; i < values.size(); ++i) {
    deviations.push_back(values[i] - center);
    if (i > 0) {
      differences.push_back((values[i] - values[i - 1]) / std::sqrt(2.));
    }
  }
  const double own =
      std::min(WinsorisedVariance(differences), WinsorisedVariance(deviations));
  const double n = static_cast<double>(differences.size());
  return std::sqrt((kPriorDegrees * expected * expected + n * own) /
                   (kPriorDegrees + n));
}

// The level of a side: of two values the one nearer to the other side, so that
// one wild value makes no step.
double LevelBeside(absl::Span<const double> side, double other) {
  if (side.size() > 2) return Median(side);
  return *std::min_element(side.begin(), side.end(), [&](double a, double b) {
    return std::abs(a - other) < std::abs(b - other);
  });
}

double AbsoluteDeviation(absl::Span<const double> values) {
  const double center = Median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - center);
  return sum;
}

// At the place that leaves least deviation on both sides, if the levels differ
// there.
void Split(absl::Span<const double> values, int offset, double scale,
           std::vector<int>* starts) {
  const int n = static_cast<int>(values.size());
  int best = 0;
  double least = 0;
  for (int place = kShortest; place + kShortest <= n; ++place) {
    const double left = AbsoluteDeviation(values.first(place)) +
                        AbsoluteDeviation(values.subspan(place));
    if (best > 0 && left >= least) continue;
    least = left;
    best = place;
  }
  if (best == 0) return;
  const auto left = values.first(best), right = values.subspan(best);
  const double step =
      LevelBeside(left, Median(right)) - LevelBeside(right, Median(left));
  // Medians of few values are less sure than means.
  const double error = 1.2 * scale * std::sqrt(1. / best + 1. / (n - best));
  if (std::abs(step) < kThreshold * error ||
      std::abs(step) < kLeastStep * scale) {
    return;
  }
  Split(values.first(best), offset, scale, starts);
  starts->push_back(offset + best);
  Split(values.subspan(best), offset + best, scale, starts);
}

}  // namespace

std::vector<int> FindLevelSteps(absl::Span<const double> values,
                                double expected) {
  std::vector<int> starts = {0};
  if (values.size() < 2 * kShortest) return starts;
  Split(values, 0, Scale(values, expected), &starts);
  return starts;
}

}  // namespace optrail::tracker
