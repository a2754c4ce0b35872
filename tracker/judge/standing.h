#ifndef OPTRAIL_TRACKER_JUDGE_STANDING_H_
#define OPTRAIL_TRACKER_JUDGE_STANDING_H_

// Decides where the newest point of a series stands, by its changes. Part of
// judge.h.

#include <vector>

#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// Levels and their noise are not known from fewer points than this.
inline constexpr int kFewestForLevel = 5;

// The values of the points in [begin, end) that have one.
std::vector<double> ValuesOf(const Series& series, int begin, int end);

// Returns whether the point has a value and nothing went wrong.
bool IsWorking(const Point& point);

// The verdict on a series whose change has this answer; on one that got worse
// where nobody has answered.
Verdict VerdictOfAnswer(ChangeState answer);

// Fills in known_points, standing, why, decided_by and
// minimum_detectable_effect of a judgement whose changes and baseline are
// known; `recent_points` is that of JudgeOptions.
void DecideStanding(const Series& series, int recent_points,
                    Judgement& judgement);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_STANDING_H_
