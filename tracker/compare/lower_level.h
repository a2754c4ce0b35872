#ifndef OPTRAIL_TRACKER_COMPARE_LOWER_LEVEL_H_
#define OPTRAIL_TRACKER_COMPARE_LOWER_LEVEL_H_

// The level of times that others only ever make longer.
//
//   SlowValues slow = {.share = .3, .excess = .1};  // FitSlowValues() learns
//   const LowerLevel found = FindLowerLevel(logs, variances, slow);
//   // found.level, found.undisturbed[i]
//
// A neighbour on the same core, cache or memory delays a process; nothing makes
// code faster than it is. So a value is level + noise, or with some probability
// level + noise + an exponential excess, and the level is what makes the values
// most likely: the mean of the lowest that agree. Chen and Revels ("Robust
// benchmarking in noisy environments", 2016) take the minimum for this reason;
// here noise has a width, so that where nothing disturbs the level is a mean,
// and a single wild low value does not decide alone.
//
// It is no estimate for values whose noise has two sides and heavy tails: see
// robust.h.

#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

// How often values are slow, and by how much in the mean (of logarithms).
struct SlowValues {
  double share = 0;
  double excess = .1;

  // The probability of a slow value that is `by` or more above the level.
  double Tail(double by) const;
};

struct LowerLevel {
  double level = std::numeric_limits<double>::quiet_NaN();
  double variance = 0;              // of the level, by noise alone
  std::vector<double> undisturbed;  // by value: the probability that it is
};

// Finds it; there are as many values as variances (of their noise), at least
// one. NaN stands for no value.
LowerLevel FindLowerLevel(absl::Span<const double> values,
                          absl::Span<const double> variances,
                          const SlowValues& slow);

// Groups of values, each with a level of its own: processes of runs.
struct ValueGroup {
  std::vector<double> values;
  std::vector<double> extra_variances;  // beside the noise that all have
};

// What is believed before, and how many values that is worth.
struct SlowValuesPrior {
  double variance = 0;
  double variance_degrees = 4;
  // Where the search begins, if that is more: few low values that agree are no
  // level where most do not.
  double start_variance = 0;
  SlowValues slow;
  double weight = 5;
};

struct SlowValuesFit {
  double variance = 0;  // of the noise
  double degrees = 0;   // that the data gave
  SlowValues slow;
  std::vector<LowerLevel> levels;  // by group; NaN where it is empty
};

// Expectation and maximisation (Dempster, Laird and Rubin, 1977), a posterior
// mode. No noise is believed to be less than `least_variance`.
SlowValuesFit FitSlowValues(const std::vector<ValueGroup>& groups,
                            const SlowValuesPrior& prior,
                            double least_variance);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_LOWER_LEVEL_H_
