#ifndef OPTRAIL_TUNING_REPLAY_SCORE_H_
#define OPTRAIL_TUNING_REPLAY_SCORE_H_

// How well a search did on a recording, and how well random search would do.
//
// The fraction after n evaluations is optimum time / best time found, 0 while
// nothing succeeded; failed configs count as evaluations. ev5 is the number of
// evaluations until the best found is within 5% of the optimum, censored at the
// largest budget.

#include <vector>

#include "tuning/replay/recording.h"

namespace optrail::tuning {

// The least mean time of the recording, in ms.
double OptimumMs(const Recording& recording);

// Returns whether a time counts as found for ev5: at most 5% above the optimum.
bool WithinFivePercent(double time_ms, double optimum_ms);

// The expected fraction of uniform search without replacement after `budget`
// evaluations: the sum over configs of their fraction times the probability
// that they are the best of the sample. In closed form, not simulated.
double RandomExpectedFraction(const Recording& recording, int budget);

// The expected ev5 of uniform search without replacement.
double RandomExpectedEv5(const Recording& recording, int censored_at);

// The area (in log-log scale) between a reference point and the front of
// `points` (pairs to be minimised, positive). Points beyond the reference add
// nothing.
struct Point2 {
  double x = 0;
  double y = 0;
};
double LogHypervolume(std::vector<Point2> points, Point2 reference);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_SCORE_H_
