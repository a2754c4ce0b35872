#include "tracker/detect/sudden.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

// Most runs that could be a sudden change are not: each test is against the
// level's own noise.
constexpr int kStepPoints = 3;
struct SuddenRun {
  int points;
  // Points of the level before, without and with memory.
  int history;
  int history_with_memory;
  // How far all of the run's points lie beyond the level's farthest.
  double beyond;
  // The step between the means of kStepPoints neighbours, against the largest
  // of the level: where noise has memory, neighbours differ by little.
  double step;
};
constexpr SuddenRun kSuddenRuns[] = {{4, 20, 20, 2.5, 3.0},
                                     {5, 20, 20, 1.6, 2.1},
                                     {6, 25, 40, 0.6, 1.35},
                                     {8, 25, 40, 0.9, 1.35}};
constexpr double kAgreement = 3;
// Where neighbours correlate more than this, the step must be as many times as
// large.
constexpr double kMemory = 0.3;
constexpr double kStepWithMemory = 2.5;
// And where the level is known from few points, whose largest step is not large
// yet: by a factor of 1 + this / points.
constexpr double kFewPoints = 12;
// Two, three, and more points stand apart beyond so many times the farthest of
// the level before, by the same factor, where it is known from enough points.
// One point never does: now and then a whole run is bad.
struct ApartRun {
  size_t history;
  double beyond;
};
constexpr size_t kFewestApart = 2;
constexpr ApartRun kApartRuns[] = {{10, 6}, {8, 3}, {5, 1.5}};
constexpr double kSuddenConfidence = 0.99999;
// A level that the points before have been at so long is none that they leave
// for the first time.
constexpr int kVisitPoints = 3;
// The level before is known from at most so many points.
constexpr size_t kMostHistory = 60;
// Values agree with a level within this share of the shift.
constexpr double kSameLevel = 0.3;

constexpr double kNormal95 = 1.959964;
// Variance of a median over that of a mean, for normal noise.
constexpr double kMedianVariance = M_PI / 2;

// The change of the means of kStepPoints neighbours at `place`, times
// kStepPoints.
double StepAt(absl::Span<const double> values, int place) {
  double step = 0;
  for (int i = 0; i < kStepPoints; ++i) {
    step += values[place + i] - values[place - 1 - i];
  }
  return std::abs(step);
}

// Whether the values, whose level is `level`, were at `other` for a while.
bool WasVisited(absl::Span<const double> values, double level, double other) {
  const double tolerance = kSameLevel * std::abs(other - level);
  int run = 0;
  for (const double value : values) {
    run = std::abs(value - other) <= tolerance ? run + 1 : 0;
    if (run >= kVisitPoints) return true;
  }
  return false;
}

// Returns whether the noise of `history` around `level` has memory.
bool HasMemory(absl::Span<const double> history, double level) {
  double sum = 0, lagged = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    const double residual = history[i] - level;
    sum += residual * residual;
    if (i > 0) lagged += residual * (history[i - 1] - level);
  }
  return lagged > kMemory * sum;
}

// The run of the last points as a change, if it is one.
absl::optional<ChangePoint> ChangeOfRun(absl::Span<const double> values,
                                        const SuddenRun& run, int history) {
  const int middle = static_cast<int>(values.size()) - run.points;
  const absl::Span<const double> before =
      values.subspan(middle - history, history);
  const absl::Span<const double> after = values.subspan(middle);
  const double level = Median(before);
  double farthest = 0;
  for (const double value : before) {
    farthest = std::max(farthest, std::abs(value - level));
  }
  const double sign = after.back() > level ? 1 : -1;
  double nearest = HUGE_VAL, widest = 0;
  for (const double value : after) {
    nearest = std::min(nearest, sign * (value - level));
    widest = std::max(widest, sign * (value - level));
  }
  if (!(nearest > run.beyond * farthest) || nearest <= 0) return absl::nullopt;
  // A burst is of points that have little in common.
  if (widest - nearest > std::max(kAgreement * farthest, nearest / 3)) {
    return absl::nullopt;
  }
  double largest = 0;  // of the steps that the noise makes
  for (int i = kStepPoints; i + kStepPoints <= history; ++i) {
    largest = std::max(largest, StepAt(before, i));
  }
  const bool memory = HasMemory(before, level);
  if (memory && history < run.history_with_memory) return absl::nullopt;
  const double factor =
      run.step * (1 + kFewPoints / history) * (memory ? kStepWithMemory : 1);
  if (!(StepAt(values, middle) > factor * largest)) return absl::nullopt;
  const double level_after = Median(after);
  if (WasVisited(values.subspan(0, middle), level, level_after)) {
    return absl::nullopt;
  }
  ChangePoint change;
  change.index = change.earliest = change.latest = middle;
  change.begin = middle - history;
  change.end = static_cast<int>(values.size());
  change.confidence = kSuddenConfidence;
  change.level_before = level;
  change.level_after = level_after;
  // The noise of both levels is taken to be as far as the history goes.
  SetRelativeChange(kNormal95 * std::sqrt(kMedianVariance) * farthest / 2 *
                        std::sqrt(1.0 / history + 1.0 / run.points),
                    change);
  return change;
}

}  // namespace

bool StandApart(absl::Span<const double> before,
                absl::Span<const double> since) {
  if (before.size() > kMostHistory) {
    before.remove_prefix(before.size() - kMostHistory);
  }
  if (since.size() < kFewestApart) return false;
  const ApartRun& run = kApartRuns[std::min(since.size() - kFewestApart,
                                            std::size(kApartRuns) - 1)];
  if (before.size() < run.history) return false;
  const double level = Median(before);
  const double sign = since.back() > level ? 1 : -1;
  double farthest = 0, nearest = HUGE_VAL;
  for (const double value : before) {
    farthest = std::max(farthest, std::abs(value - level));
  }
  for (const double value : since) {
    nearest = std::min(nearest, sign * (value - level));
  }
  const double factor =
      run.beyond * (1 + kFewPoints / static_cast<double>(before.size()));
  return nearest > factor * farthest && nearest > 0;
}

absl::optional<ChangePoint> FindSudden(absl::Span<const double> values) {
  const int n = static_cast<int>(values.size());
  for (const SuddenRun& run : kSuddenRuns) {
    const int history =
        std::min(n - run.points, static_cast<int>(kMostHistory));
    if (history < run.history) break;
    if (auto change = ChangeOfRun(values, run, history)) return change;
  }
  return absl::nullopt;
}

}  // namespace optrail::tracker
