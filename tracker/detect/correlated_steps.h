#ifndef OPTRAIL_TRACKER_DETECT_CORRELATED_STEPS_H_
#define OPTRAIL_TRACKER_DETECT_CORRELATED_STEPS_H_

// Steps in noise that remembers. A machine that warms up, a neighbour that
// comes and goes: such noise wanders, and a partitioning that takes points for
// independent cuts it into pieces. Here steps and memory are judged together.
//
//   std::vector<int> steps = SelectCorrelatedSteps(values, candidates, 23.0);

#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

// Models the values as a sum of steps at some of `candidates` (ascending, each
// in [1, n)) plus ARMA(1,1) noise, which is what a first-order autoregression
// observed through white noise looks like:
//
//   e_t = y_t - phi y_{t-1} + theta e_{t-1},   0 <= theta < phi < 1
//
// and returns the steps that minimise, over a grid of (phi, theta) and along
// the path of backward elimination,
//
//   n log(sum of e_t^2 / n) + penalty * number of steps.
//
// Choosing memory and steps by one criterion matters: estimating the memory
// first either takes steps for memory or memory for steps. (Compare DeCAFS,
// Romano et al. 2022, which optimises steps for given parameters.) Values
// should have their outliers clipped. Candidates are treated in groups of at
// most 32, so the time is O(points + candidates) times constants.
std::vector<int> SelectCorrelatedSteps(absl::Span<const double> values,
                                       absl::Span<const int> candidates,
                                       double penalty);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_CORRELATED_STEPS_H_
