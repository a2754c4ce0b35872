#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/stats/statistics.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/slopes.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/levels.h"

namespace optrail::tracker {
namespace {

constexpr int kFewestOfCreep = 30;
constexpr double kCreepErrors = 5;
// The middle of a creep lies beyond this share of it, and before the rest.
constexpr double kMiddleShare = .2;
// A line with one kink is so much likelier than a single step: twice the
// logarithm of the ratio, over the inflation.
constexpr double kClimbs = 10;
// Residuals further out count as so many scales.
constexpr double kClip = 3;
// Beginnings of a level are tried that end at most 1 / this of it apart.
constexpr int kTriedShare = 64;
// A mark at which the medians of so many neighbours jump by this share of the
// rise is a step, and no part of a creep.
constexpr int kJumpPoints = 5;
constexpr double kJumpShare = .5;
// A creep that was found lasts while this share of it does, beyond so many
// errors.
constexpr double kRemainingShare = .7;
constexpr double kRemainingErrors = 3;

// The first and the newest points of a level, as many of each, and how much
// the level rose between them.
struct Ends {
  explicit Ends(absl::Span<const double> logs)
      : points(std::clamp(static_cast<int>(logs.size()) / 4, kFewestEnd,
                          kLevelPoints)),
        first(logs.begin(), logs.begin() + points),
        newest(logs.end() - points, logs.end()),
        rise(Median(newest) - Median(first)) {}

  int points;
  std::vector<double> first, newest;
  double rise;
};

// Returns whether the values climb rather than step: the best line with one
// kink leaves so much less than the best two levels that chance, in noise of
// that inflation, does not explain it.
bool Climbs(absl::Span<const double> values, double inflation) {
  const int n = static_cast<int>(values.size());
  const RangeFits fits(values);
  int place = 0;
  double step = std::numeric_limits<double>::infinity();
  for (int i = 1; i < n; ++i) {
    const double residual =
        fits.Level(0, i).residual + fits.Level(i, n).residual;
    if (residual < step) {
      step = residual;
      place = i;
    }
  }
  const double kink = step + StepOverKink(values, 0, place, n);
  return step > std::max(0.0, kink) * std::exp(kClimbs * inflation / n);
}

// The inflation of the variance by the memory of the noise, where these points
// creep by no more than `most_rise`; nullopt where they do not.
absl::optional<double> CreepInflation(const Series& series,
                                      absl::Span<const double> logs,
                                      double most_rise) {
  const Ends ends(logs);
  if (WorseBy(series, std::expm1(ends.rise)) < kLeastEffect ||
      std::abs(ends.rise) > most_rise) {
    return absl::nullopt;
  }
  const int n = static_cast<int>(logs.size()), k = ends.points;
  const auto is_beyond_noise = [&](double inflation) {
    return std::abs(ends.rise) >
           kCreepErrors * LevelsOf(ends.first, ends.newest, inflation).error;
  };
  const double middle =
      (Median(logs.subspan((n - k) / 2, k)) - Median(ends.first)) / ends.rise;
  // What follows takes time in proportion to the points.
  if (middle < kMiddleShare || middle > 1 - kMiddleShare ||
      !is_beyond_noise(/*inflation=*/1)) {
    return absl::nullopt;
  }
  // The noise beside a line, which tells a walk from a slope.
  std::vector<double> residuals(logs.begin(), logs.end());
  for (int i = 0; i < n; ++i) residuals[i] -= ends.rise * i / (n - k);
  const double center = Median(residuals);
  for (double& residual : residuals) residual -= center;
  const double scale = ResidualScale(residuals);
  const double inflation = VarianceInflation(residuals, scale);
  if (!is_beyond_noise(inflation) ||
      !Climbs(ClipResiduals(logs, residuals, kClip * scale), inflation)) {
    return absl::nullopt;
  }
  return inflation;
}

// The most points, at most `n`, at which a beginning of a level is tried. These
// are the same whatever comes after them: what one has shown it shows for ever.
int LastTried(int n) {
  int stride = 1;
  while (n / stride >= 2 * kTriedShare) stride *= 2;
  return n / stride * stride;
}

// The difference of the medians of up to `most` points on either side of the
// place; nullopt where one side has none.
absl::optional<double> JumpOfLogs(const Series& series, int begin, int place,
                                  int most) {
  const std::vector<double> before =
      Logs(series, place - 1, begin - 1, -1, most, LogOfValue);
  const std::vector<double> after =
      Logs(series, place, static_cast<int>(series.points.size()), 1, most,
           LogOfValue);
  if (before.empty() || after.empty()) return absl::nullopt;
  return Median(after) - Median(before);
}

}  // namespace

absl::optional<ChangePoint> FindCreep(const Series& series, int begin,
                                      const std::vector<int>& marks) {
  std::vector<int> places;
  std::vector<double> logs;
  for (int i = begin; i < static_cast<int>(series.points.size()); ++i) {
    if (const auto log = LogOfValue(series.points[i])) {
      places.push_back(i);
      logs.push_back(*log);
    }
  }
  const int n = static_cast<int>(logs.size());
  if (n < kFewestOfCreep) return absl::nullopt;
  const Ends ends(logs);
  if (WorseBy(series, std::expm1(ends.rise)) < kLeastEffect) {
    return absl::nullopt;
  }
  int before_step = n;
  for (const int mark : marks) {
    const absl::optional<double> jump =
        JumpOfLogs(series, begin, mark, kJumpPoints);
    if (!jump || *jump / ends.rise < kJumpShare) continue;
    const auto place = std::lower_bound(places.begin(), places.end(), mark);
    before_step =
        std::min(before_step, static_cast<int>(place - places.begin()));
  }
  // What was reported stays while the level does.
  for (int known = LastTried(before_step); known >= kFewestOfCreep;
       known = LastTried(known - 1)) {
    const absl::optional<double> inflation =
        CreepInflation(series, absl::MakeSpan(logs).subspan(0, known),
                       /*most_rise=*/std::abs(ends.rise) / kRemainingShare);
    if (!inflation) continue;
    const Levels levels = LevelsOf(ends.first, ends.newest, *inflation);
    if (std::abs(ends.rise) <= kRemainingErrors * levels.error) continue;
    ChangePoint change = ChangeOfLogs(levels, places[n - ends.points]);
    change.begin = places[0];
    change.end = places[n - 1] + 1;
    change.earliest = places[ends.points];
    change.between = change.index - change.earliest;
    return change;
  }
  return absl::nullopt;
}

bool JumpsAt(const Series& series, int begin, const ChangePoint& change) {
  const absl::optional<double> jump =
      JumpOfLogs(series, begin, change.index, kFewestBeside);
  return !jump || WorseBy(series, std::expm1(*jump)) >= kLeastEffect;
}

}  // namespace optrail::tracker
