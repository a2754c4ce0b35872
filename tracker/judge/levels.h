#ifndef OPTRAIL_TRACKER_JUDGE_LEVELS_H_
#define OPTRAIL_TRACKER_JUDGE_LEVELS_H_

// Levels of a series as medians of logarithms, and what lies between two. A
// part of beside.h, used by nothing else.
//
//   const Levels levels = LevelsOf(
//       Logs(series, place - 1, -1, -1, kLevelPoints, LogOfValue),
//       Logs(series, place, end, 1, kLevelPoints, LogOfValue));
//   const bool is_sure =
//       std::abs(levels.after - levels.before) > 4 * levels.error;

#include <vector>

#include "absl/types/optional.h"
#include "tracker/detect/detect.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// Levels are taken from as many points on either side, and not from fewer.
inline constexpr int kLevelPoints = 20;
inline constexpr int kFewestBeside = 3;
// The ends of a level, and what few newest points are held against, are of no
// fewer points.
inline constexpr int kFewestEnd = 5;

struct Levels {
  double before = 0, after = 0;  // medians
  double error = 0;              // standard error of their difference
};

// Neither side may be empty. `inflation` is that of the variance by the memory
// of the noise.
Levels LevelsOf(std::vector<double> before, std::vector<double> after,
                double inflation = 1);

// nullopt where there is no value, or one that is not positive.
absl::optional<double> LogOfValue(const Point& point);

// Up to `most` of the logarithms that `read` gives for points begin, begin +
// step, ... before `end`, for a step of 1 or -1; a point without one is passed
// over. The list is empty where `end` lies behind `begin`.
template <typename Read>
std::vector<double> Logs(const Series& series, int begin, int end, int step,
                         int most, const Read& read) {
  std::vector<double> logs;
  for (int i = begin;
       step * (end - i) > 0 && static_cast<int>(logs.size()) < most;
       i += step) {
    if (const absl::optional<double> log = read(series.points[i])) {
      logs.push_back(*log);
    }
  }
  return logs;
}

ChangePoint ChangeOfLogs(const Levels& levels, int index);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_LEVELS_H_
