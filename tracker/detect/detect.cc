#include "tracker/detect/detect.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/stats/statistics.h"
#include "tracker/detect/correlated_steps.h"
#include "tracker/detect/level_path.h"
#include "tracker/detect/noise.h"
#include "tracker/detect/place.h"
#include "tracker/detect/slopes.h"
#include "tracker/detect/trends.h"

namespace optrail::tracker {
namespace {

// The grid of levels: cells per noise scale, and at most how many cells. Where
// a series spans more, its noise is taken to be that much larger.
constexpr double kCellsPerScale = 4;
constexpr int kMostCells = 2048;
// Residuals can't be much quieter than differences say; without this, a
// segment per value would look noiseless.
constexpr double kLeastScaleShare = 0.3;
constexpr double kClipScales = 3;
// When noise counts as correlated.
constexpr double kCorrelatedInflation = 1.5;
constexpr double kCorrelatedNeighbours = 0.25;
// Candidates for steps in correlated noise: log(points) times this.
constexpr double kCandidatePenalty = 3;
// How many points the noise of the whole series counts for in one segment's.
constexpr double kSharedPoints = 10;
constexpr double kNormal95 = 1.959964;
// Variance of a median over that of a mean, for normal noise.
constexpr double kMedianVariance = M_PI / 2;

// The range that levels can take: no segment's level lies outside the running
// median of five, so isolated outliers need not stretch it.
struct Range {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
};

double MedianOfFive(const double* v) {
  // The middle of the three that remain when the smallest and the largest of
  // four are dropped, and the fifth.
  const double low = std::max(std::min(v[0], v[1]), std::min(v[2], v[3]));
  const double high = std::min(std::max(v[0], v[1]), std::max(v[2], v[3]));
  return std::max(std::min(low, high), std::min(std::max(low, high), v[4]));
}

Range RangeOfLevels(absl::Span<const double> values) {
  Range range;
  for (size_t i = 0; i + 5 <= values.size(); ++i) {
    const double median = MedianOfFive(&values[i]);
    range.low = std::min(range.low, median);
    range.high = std::max(range.high, median);
  }
  return range;
}

// Values on a grid of levels for level_path.h, kCellsPerScale cells to `scale`.
class Grid {
 public:
  Grid(absl::Span<const double> values, const Range& range, double scale) {
    const double cells_per_unit = kCellsPerScale / scale;
    problem_.num_levels =
        static_cast<int>((range.high - range.low) * cells_per_unit) + 1;
    problem_.cells.reserve(values.size());
    for (const double v : values) {
      problem_.cells.push_back(static_cast<int32_t>(
          std::clamp(std::floor((v - range.low) * cells_per_unit), -1e6, 1e6)));
    }
  }

  std::vector<int> Segment(std::vector<int32_t> loss, double penalty,
                           int min_segment) {
    problem_.loss = std::move(loss);
    problem_.penalty =
        static_cast<int32_t>(std::lround(std::min(penalty, 1e5) * kLossUnit));
    problem_.min_segment = min_segment;
    return SegmentLevels(problem_);
  }

 private:
  LevelProblem problem_;
};

struct Partition {
  std::vector<int> changes;
  std::vector<int> candidates;  // in correlated noise only
  bool correlated = false;
  double scale = 0;
  double inflation = 1;
  double penalty = 0;
};

// Levels under a truncated quadratic loss, then once more under a loss measured
// from the residuals, with a penalty that grows with the noise's memory.
Partition PartitionLevels(absl::Span<const double> values,
                          double difference_scale,
                          const DetectOptions& options) {
  const double log_n = std::log(static_cast<double>(values.size()));
  const Range range = RangeOfLevels(values);
  const double least_scale =
      std::max((range.high - range.low) * kCellsPerScale / kMostCells,
               kLeastScaleShare * difference_scale);
  const std::vector<int32_t> quadratic =
      TruncatedQuadraticLoss(kCellsPerScale, options.loss_cap);

  Partition result;
  result.changes =
      Grid(values, range, std::max(difference_scale, least_scale))
          .Segment(quadratic, options.penalty * log_n, options.min_segment);

  const std::vector<double> residuals =
      SegmentResiduals(values, result.changes);
  result.scale = std::max(ResidualScale(residuals), least_scale);
  result.inflation = VarianceInflation(residuals, result.scale);
  result.penalty = options.penalty * log_n * result.inflation;
  Grid grid(values, range, result.scale);
  result.changes = grid.Segment(
      DensityLoss(residuals, result.scale, kCellsPerScale, options.loss_cap),
      result.penalty, options.min_segment);

  if (result.inflation > kCorrelatedInflation &&
      NeighbourCorrelation(SegmentResiduals(values, result.changes),
                           result.scale) > kCorrelatedNeighbours) {
    result.correlated = true;
    result.candidates =
        Grid(values, range, result.scale)
            .Segment(quadratic, kCandidatePenalty * log_n, options.min_segment);
  }
  return result;
}

// Variance of one segment's points around `level`: its own where it has many,
// everyone's where it has few.
double PointVariance(absl::Span<const double> segment, double level,
                     const Analysis& noise) {
  std::vector<double> residuals(segment.begin(), segment.end());
  for (double& r : residuals) r -= level;
  const double own = ResidualScale(residuals);
  const double n = static_cast<double>(segment.size());
  return (n * own * own + kSharedPoints * noise.scale * noise.scale) /
         (n + kSharedPoints);
}

double MeanVariance(double point_variance, double n, double inflation) {
  return point_variance * std::min(inflation, n) / n;
}

// Levels, confidence and interval of each step, from the two segments beside
// it. `values` have their drift taken off; `drift` may be empty.
std::vector<ChangePoint> Describe(absl::Span<const double> values,
                                  absl::Span<const double> drift,
                                  absl::Span<const int> steps,
                                  const Analysis& noise) {
  const int n = static_cast<int>(values.size());
  std::vector<ChangePoint> changes;
  for (size_t k = 0; k < steps.size(); ++k) {
    const int begin = k > 0 ? steps[k - 1] : 0;
    const int middle = steps[k];
    const int end = k + 1 < steps.size() ? steps[k + 1] : n;
    const double before = Median(values.subspan(begin, middle - begin));
    const double after = Median(values.subspan(middle, end - middle));
    const double base = drift.empty() ? 0 : drift[middle];
    // Of the points on either side, and of the difference of their means.
    const double variance_before =
        PointVariance(values.subspan(begin, middle - begin), before, noise);
    const double variance_after =
        PointVariance(values.subspan(middle, end - middle), after, noise);
    const double variance =
        MeanVariance(variance_before, middle - begin, noise.inflation) +
        MeanVariance(variance_after, end - middle, noise.inflation);

    ChangePoint change;
    change.index = middle;
    change.begin = begin;
    change.end = end;
    const PlaceRange places = RangeOfPlaces(
        values.subspan(begin, end - begin), middle - begin, before, after,
        (variance_before + variance_after) / 2 * noise.inflation);
    change.earliest = begin + places.earliest;
    change.latest = begin + places.latest;
    change.level_before = before + base;
    change.level_after = after + base;
    const double shift = after - before;
    // Schwarz's approximation to the odds, against the largest of n chances.
    const double evidence =
        variance > 0 ? shift * shift / variance - 2 * std::log(n + 0.0) : 1e3;
    change.confidence = std::clamp(
        1 / (1 + std::exp(-std::min(evidence, 80.0) / 2)), 0.5, 1 - 1e-9);
    SetRelativeChange(kNormal95 * std::sqrt(kMedianVariance * variance),
                      change);
    changes.push_back(change);
  }
  return changes;
}

// Levels of values that had been divided by `unit`.
void InUnits(double unit, std::vector<ChangePoint>& changes) {
  for (ChangePoint& change : changes) {
    constexpr double kMax = std::numeric_limits<double>::max();
    change.level_before = std::clamp(change.level_before * unit, -kMax, kMax);
    change.level_after = std::clamp(change.level_after * unit, -kMax, kMax);
  }
}

}  // namespace

void SetRelativeChange(double margin, ChangePoint& change) {
  const double unit = change.level_before != 0 ? std::abs(change.level_before)
                                               : std::abs(change.level_after);
  const double shift = change.level_after - change.level_before;
  // A level next to 0 makes ratios that overflow.
  static constexpr double kLargest = 1e300;
  const auto ratio = [unit](double part) {
    return unit > 0 ? std::clamp(part / unit, -kLargest, kLargest) : 0;
  };
  change.relative_change = ratio(shift);
  change.relative_change_low = ratio(shift - margin);
  change.relative_change_high = ratio(shift + margin);
}

Analysis Analyze(absl::Span<const double> input, const DetectOptions& options) {
  Analysis analysis;
  const int n = static_cast<int>(input.size());
  if (n < 2 * options.min_segment) return analysis;
  const double unit = PowerOfTwoUnit(input);
  std::vector<double> values(input.begin(), input.end());
  for (double& v : values) v /= unit;

  const double difference_scale = DifferenceScale(values);
  if (difference_scale == 0) return analysis;  // constant
  Partition partition = PartitionLevels(values, difference_scale, options);

  const auto separate = [&] {
    const std::vector<double> residuals =
        SegmentResiduals(values, partition.changes);
    return SeparateSlopes(
        ClipResiduals(values, residuals, kClipScales * partition.scale),
        partition.changes, partition.scale * partition.scale, partition.penalty,
        options.slope_share);
  };
  Slopes slopes = separate();
  std::vector<double> drift = slopes.drift;
  if (!drift.empty()) {
    // The stairs had inflated the noise; look again without the slopes.
    for (int i = 0; i < n; ++i) values[i] -= drift[i];
    partition = PartitionLevels(values, difference_scale, options);
    slopes = separate();
  }
  std::vector<int> steps = std::move(slopes.steps);
  if (partition.correlated) {
    const std::vector<double> residuals =
        SegmentResiduals(values, partition.candidates);
    steps = SelectCorrelatedSteps(
        ClipResiduals(values, residuals, kClipScales * partition.scale),
        partition.candidates,
        options.correlated_penalty * std::log(static_cast<double>(n)));
  }

  analysis.scale = partition.scale;
  analysis.inflation = partition.inflation;
  analysis.changes = Describe(values, drift, steps, analysis);
  analysis.scale *= unit;
  InUnits(unit, analysis.changes);
  return analysis;
}

std::vector<ChangePoint> DetectOffline(absl::Span<const double> values,
                                       const DetectOptions& options) {
  std::vector<double> finite;
  std::vector<int> places;
  finite.reserve(values.size());
  places.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    finite.push_back(values[i]);
    places.push_back(static_cast<int>(i));
  }
  const double unit = PowerOfTwoUnit(finite);
  for (double& v : finite) v /= unit;
  const std::vector<double> season = SeasonOf(finite);
  for (size_t i = 0; i < season.size(); ++i) finite[i] -= season[i];
  Analysis analysis = Analyze(finite, options);
  if (analysis.changes.empty()) {
    if (const auto breaks = BreaksOfTrend(finite)) {
      analysis.changes = Describe(finite, {}, *breaks, analysis);
    }
  }
  std::vector<ChangePoint> changes = std::move(analysis.changes);
  InUnits(unit, changes);
  for (ChangePoint& change : changes) {
    change.index = places[change.index];
    change.begin = places[change.begin];
    change.end = places[change.end - 1] + 1;
    change.earliest = places[change.earliest - 1] + 1;
    change.latest = places[change.latest];
  }
  return changes;
}

}  // namespace optrail::tracker
