#include "reports/judge_series.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "base/units.h"
#include "tracker/detect/online.h"

namespace optrail::reports {
namespace {

// Fewer points than this are compared one with the other.
constexpr int kFewestPointsForDetection = 10;
// For two points, which hold little evidence: only what is plain is said.
constexpr double kTwoPointSignificance = 0.001;

bool HasValue(const Point& point) {
  return std::isfinite(point.value) && point.value > 0;
}

bool IsWorse(const Series& series, double relative_change) {
  return series.lower_is_better == (relative_change > 0);
}

ChangePoint Convert(const Series& series, const tracker::ChangePoint& change,
                    int offset, bool provisional) {
  ChangePoint result;
  result.point = change.index + offset;
  result.relative_change = change.relative_change;
  result.relative_change_low = change.relative_change_low;
  result.relative_change_high = change.relative_change_high;
  result.confidence = change.confidence;
  result.provisional = provisional;
  result.for_the_worse = IsWorse(series, change.relative_change);
  return result;
}

// Levels on both sides of an epoch do not compare: each is folded by itself.
void FindChangePoints(Series& series) {
  std::vector<int> starts = {0};
  for (const Epoch& epoch : series.epochs) starts.push_back(epoch.point);
  starts.push_back(static_cast<int>(series.points.size()));
  for (size_t e = 0; e + 1 < starts.size(); ++e) {
    std::vector<double> values;
    for (int i = starts[e]; i < starts[e + 1]; ++i) {
      values.push_back(series.points[i].value);
    }
    if (values.size() < kFewestPointsForDetection) continue;
    const tracker::OnlineResult found = tracker::DetectOnline(values);
    for (const tracker::ChangePoint& change : found.confirmed) {
      series.change_points.push_back(Convert(series, change, starts[e], false));
    }
    const bool newest_epoch = e + 2 == starts.size();
    if (found.provisional && newest_epoch) {
      series.change_points.push_back(
          Convert(series, *found.provisional, starts[e], true));
    }
  }
}

// The shift that five new points against ten old ones show at the 0.1% level
// with a probability of 95%: (z(.9995) + z(.95)) sqrt(1/5 + 1/10) standard
// deviations. The noise is that of the newest level, robustly.
absl::optional<double> MinimumDetectableEffect(const Series& series) {
  int begin = series.epochs.empty() ? 0 : series.epochs.back().point;
  for (const ChangePoint& change : series.change_points) {
    begin = std::max(begin, change.point);
  }
  std::vector<double> logs;
  for (size_t i = begin; i < series.points.size(); ++i) {
    if (HasValue(series.points[i])) {
      logs.push_back(std::log(series.points[i].value));
    }
  }
  if (logs.size() < 5) return absl::nullopt;
  return std::expm1(2.703 * MedianAbsoluteDeviation(logs));
}

void SetRatio(const ChangePoint& change, Series& series) {
  series.ratio = 1 + change.relative_change;
  if (change.relative_change_low) {
    series.ratio_low = 1 + *change.relative_change_low;
  }
  if (change.relative_change_high) {
    series.ratio_high = 1 + *change.relative_change_high;
  }
}

std::vector<double> Logs(const Point& point) {
  std::vector<double> logs;
  for (double median : point.process_medians) {
    if (std::isfinite(median) && median > 0) logs.push_back(std::log(median));
  }
  return logs;
}

void JudgeByTwoPoints(const JudgeOptions& options, const Point& before,
                      const Point& newest, Series& series) {
  const std::vector<double> x = Logs(before);
  const std::vector<double> y = Logs(newest);
  series.verdict = Verdict::kCannotTell;
  if (x.size() < 2 || y.size() < 2) {
    series.verdict_detail =
        "one process on a side: nothing says how much processes differ";
    return;
  }
  const TTest test = WelchTTest(x, y);
  series.ratio = std::exp(test.difference);
  series.ratio_low = std::exp(test.interval.low);
  series.ratio_high = std::exp(test.interval.high);
  const double change = *series.ratio - 1;
  if (std::fabs(change) >= options.min_effect &&
      test.p_value < kTwoPointSignificance) {
    const bool worse = IsWorse(series, change);
    series.verdict = worse ? Verdict::kProvisional : Verdict::kImproved;
    series.verdict_detail =
        absl::StrCat("against the point before, ", y.size(),
                     " processes; more points are needed to confirm");
    return;
  }
  if (*series.ratio_low > 1 / (1 + 2 * options.min_effect) &&
      *series.ratio_high < 1 + 2 * options.min_effect) {
    series.verdict = Verdict::kUnchanged;
    series.verdict_detail = "against the point before";
    return;
  }
  series.verdict_detail =
      absl::StrFormat("processes differ too much: the change may be %s to %s",
                      FormatRatioAsPercent(*series.ratio_low),
                      FormatRatioAsPercent(*series.ratio_high));
}

void JudgeByChangePoints(const JudgeOptions& options, Series& series) {
  const int recent =
      static_cast<int>(series.points.size()) - options.recent_points;
  series.verdict = Verdict::kUnchanged;
  for (auto it = series.change_points.rbegin();
       it != series.change_points.rend(); ++it) {
    if (it->point < recent) break;
    if (std::fabs(it->relative_change) < options.min_effect) continue;
    // A suspected improvement is no news yet.
    if (it->provisional && !it->for_the_worse) continue;
    SetRatio(*it, series);
    series.verdict = it->provisional     ? Verdict::kProvisional
                     : it->for_the_worse ? Verdict::kRegressed
                                         : Verdict::kImproved;
    const int age = static_cast<int>(series.points.size()) - it->point;
    series.verdict_detail =
        absl::StrCat(it->provisional ? "suspected " : "", "since ", age,
                     age == 1 ? " point" : " points");
    return;
  }
}

}  // namespace

void JudgeSeries(const JudgeOptions& options, Series& series) {
  FindChangePoints(series);
  series.minimum_detectable_effect = MinimumDetectableEffect(series);
  if (series.points.empty()) return;

  const Point& newest = series.points.back();
  if (!newest.outcome.empty() && !HasValue(newest)) {
    const bool noisy = newest.outcome == "CONTENDED";
    series.verdict = noisy ? Verdict::kCannotTell : Verdict::kFailed;
    series.verdict_detail = absl::StrCat(
        newest.outcome, newest.detail.empty() ? "" : ": ", newest.detail);
    return;
  }
  const int epoch_start =
      series.epochs.empty() ? 0 : series.epochs.back().point;
  std::vector<const Point*> comparable;
  for (size_t i = epoch_start; i < series.points.size(); ++i) {
    if (HasValue(series.points[i])) comparable.push_back(&series.points[i]);
  }
  if (comparable.size() < 2) {
    series.verdict_detail = series.epochs.empty()
                                ? "the first point"
                                : "the first point of a new epoch";
    return;
  }
  if (comparable.size() < kFewestPointsForDetection) {
    JudgeByTwoPoints(options, *comparable[comparable.size() - 2],
                     *comparable.back(), series);
    return;
  }
  JudgeByChangePoints(options, series);
}

}  // namespace optrail::reports
