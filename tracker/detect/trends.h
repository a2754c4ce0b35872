#ifndef OPTRAIL_TRACKER_DETECT_TRENDS_H_
#define OPTRAIL_TRACKER_DETECT_TRENDS_H_

// Movements of a series by itself: seasons, and trends that never rest. Pieces
// of detect.h, for whole series; the online fold knows neither.
//
//   std::vector<double> season = SeasonOf(values);
//   absl::optional<std::vector<int>> breaks = BreaksOfTrend(values);

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace optrail::tracker {

// What repeats with a period of 4 to 60 points, one value per point, of mean 0
// over a period; empty if nothing does. It must be seen five times and account
// for most of what remains beside a moving mean of one period, as in the
// classical decomposition (Kendall and Stuart 1966); the shape is of medians by
// phase, so that a step or an outlier has no share in it. A sawtooth and a load
// that comes every night are seasons.
std::vector<double> SeasonOf(absl::Span<const double> values);

// Where the slope changes, for a series without steps that is sloped nearly
// everywhere: it has no levels to change. nullopt for others, and for short
// ones. A break is taken while it removes nearly half of what the lines leave
// unexplained, and no more once next to nothing is left: curves are not cut
// into ever more pieces.
absl::optional<std::vector<int>> BreaksOfTrend(absl::Span<const double> values);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_TRENDS_H_
