#ifndef OPTRAIL_TRACKER_JUDGE_BESIDE_H_
#define OPTRAIL_TRACKER_JUDGE_BESIDE_H_

// Finds what a series' own steps don't say: whether the machine made them,
// whether its level creeps without any, and what it was called before. Part of
// judge.h.
//
//   if (const auto loop = LoopBehind(series, 0, change, 60, .03)) Say(*loop);

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/detect/detect.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// Relative; what is smaller decides no standing and counts as the same level. A
// constant, so that every command judges alike; commands may show less.
inline constexpr double kLeastEffect = .03;

// In robust deviations; points further from their level are weighed down.
inline constexpr double kFarOff = 4;

// `relative_change` of the series' values as how much worse (+) they are.
double WorseBy(const Series& series, double relative_change);

// The calibration loop that took longer (or less) from the change's place on,
// as much as the benchmark to within `tolerance` (in logarithms), and beyond
// its own noise: "arithmetic took 9.8% more time". nullopt if none did, or too
// few points in [begin, end) have one recorded.
absl::optional<std::string> LoopBehind(const Series& series, int begin,
                                       const ChangePoint& change, int end,
                                       double tolerance);

// Finds a creep: the newest points from `begin` on are worse than the first
// ones by at least kLeastEffect, beyond noise with memory, those between lie
// between, and a line with a kink explains them far better than a single step.
// Its `earliest` is the first point that is not of the first ones, its `index`
// the first of the newest. One that earlier points alone have shown is there
// while .7 of it lasts. Where the values jump by half of it at one of `marks`,
// points of suspected steps, those before have to show it. O(points).
absl::optional<ChangePoint> FindCreep(const Series& series, int begin,
                                      const std::vector<int>& marks);

// Returns whether the values jump at the change's place for the worse, by at
// least kLeastEffect between the medians of a few neighbours: a step, where a
// creep climbs by less.
bool JumpsAt(const Series& series, int begin, const ChangePoint& change);

// The newest points that stand off the level from `begin` on, for the worse or
// for the better, by at least kLeastEffect and beyond its noise, where they are
// too few for a detector: one run is what the gate judges. nullopt where the
// newest does not.
absl::optional<ChangePoint> FindNewest(const Series& series, int begin,
                                       bool for_the_worse = true);

// Does the same, for the worse only, where the level has too few points from
// `begin` on: its noise is that of the level before, from `before` on.
absl::optional<ChangePoint> FindNewestBehind(const Series& series, int before,
                                             int begin);

// Does the same, for the worse only, against the level of [begin, mark), where
// `mark` is a step too small to be news: a level that climbs since then spreads
// by more than its noise. Its `earliest` is the mark.
absl::optional<ChangePoint> FindNewestBeyond(const Series& series, int begin,
                                             int mark);

// The difference between the levels of [begin, place) and [place, end), be it a
// change or not; nullopt where the points before are too few to tell the noise,
// or where there is none if `of_few`.
absl::optional<ChangePoint> DifferenceAt(const Series& series, int begin,
                                         int place, int end,
                                         bool of_few = false);

// The change from the first point on that is nearer to the level after, where a
// detector put it later: it needs more points of the level before. nullopt
// where no other point is, or too few are before it.
absl::optional<ChangePoint> MovedBack(const Series& series, int begin,
                                      const ChangePoint& change);

// The step that began the stretch of points which `change` ends by going back
// to the level from `begin` on. nullopt where there is none: the change leads
// elsewhere, or the stretch is of few points, within the noise, or too small.
absl::optional<ChangePoint> FindBeginOfStretch(const Series& series, int begin,
                                               const ChangePoint& change);

// A series that ended and one that began there, of a similar name and of the
// same metric, hardware and branch. A guess (series/similar.h).
struct Renaming {
  int from = 0, to = 0;  // indices
  // The change between their levels; absent where that is too small, too
  // unsure, or measured with another toolchain.
  absl::optional<ChangePoint> change;
};
std::vector<Renaming> FindRenamings(const std::vector<Series>& series);

// By series: whether the newest run of its suite, on its hardware and branch,
// lacks it. `runs` are read except for their results.
std::vector<bool> FindMissing(const std::vector<Series>& series,
                              const std::vector<proto::Run>& runs);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_BESIDE_H_
