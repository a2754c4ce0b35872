#ifndef OPTRAIL_TRACKER_DETECT_DETECT_H_
#define OPTRAIL_TRACKER_DETECT_DETECT_H_

// Change points of a series: where its level shifts, by how much, how surely.
//
//   for (const ChangePoint& change : DetectOffline(times_ns)) {
//     std::cout << change.index << " " << change.relative_change << "\n";
//   }
//
// Made for the results of benchmarks commit after commit: outliers, bursts of
// two or three, skewed and bimodal noise, changing variance, machines that
// wander, slow ramps. Only shifts of level are reported: an outlier, a noisier
// stretch or a slope is none. There is one setting, for all kinds of series,
// and no randomness. docs/method/detection.md has the method and what it
// measures.
//
// It sees the whole series at once. For points that arrive one by one, and
// changes that once confirmed stay, see online.h.

#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

struct ChangePoint {
  // The first point of the new level, counted from 0.
  int index = 0;
  // Which points that could be: one of [earliest, latest] is with a probability
  // of 95%; see place.h. If a series has one point per commit, these commits
  // are the suspects. Points without a value beside them are among them.
  int earliest = 0;
  int latest = 0;
  // The points that the two levels were taken from: [begin, index - between)
  // and [index, end).
  int begin = 0;
  int end = 0;
  int between = 0;
  // In [0.5, 1): how probable a change is against none, by the evidence of the
  // two segments beside it.
  double confidence = 0;
  double level_before = 0;
  double level_after = 0;
  // (after - before) / |before|, with an interval of 95%. If `before` is 0, in
  // units of |after|. Whether up is worse is the caller's knowledge.
  double relative_change = 0;
  double relative_change_low = 0;
  double relative_change_high = 0;
};

// Sets the three relative changes from the levels; `margin` is half of the
// interval, in units of the levels.
void SetRelativeChange(double margin, ChangePoint& change);

// The defaults are the method; they are named here so that tests can vary them.
struct DetectOptions {
  // A change costs this times log(points), in squared noise scales. Two would
  // do for normal noise of known scale; the rest pays for noise that is
  // neither.
  double penalty = 5;
  // The same for steps in correlated noise, whose model fits better.
  double correlated_penalty = 4;
  // A slope costs this share of a change: it lacks the place, which is worth
  // log(points), one fifth of the penalty.
  double slope_share = 0.8;
  // What a point may cost at most, in squared noise scales.
  double loss_cap = 9;
  // The shortest segment, in points.
  int min_segment = 5;
};

// Ascending by index. Values that are NaN or infinite are passed over: they
// keep their place in the count and have no say. Fewer than 2 * min_segment
// finite values: no changes. Time is linear in the number of points.
std::vector<ChangePoint> DetectOffline(absl::Span<const double> values,
                                       const DetectOptions& options = {});

// A closer look, for online.h: the changes and what the noise around them is.
struct Analysis {
  std::vector<ChangePoint> changes;
  // Standard deviation of the noise, robustly.
  double scale = 0;
  // How much wider its memory makes the variance of a mean; at least 1.
  double inflation = 1;
};

// Values must be finite.
Analysis Analyze(absl::Span<const double> values,
                 const DetectOptions& options = {});

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_DETECT_H_
