#ifndef OPTRAIL_TRACKER_CONVERGENCE_RISE_H_
#define OPTRAIL_TRACKER_CONVERGENCE_RISE_H_

// Did values rise at some moment, in one series or in several at once?
//
//   std::vector<Stratum> strata = {{{1.0, 1.1, 2.0, 2.1}, {0, 0, 1, 1}}};
//   const Shift shift = LargestRise(strata, 2, 4000);
//   if (shift.p_value < .005) ...   // rose where group 1 begins
//
// For each boundary between groups the ranks before and after it are compared
// within each stratum and summed over strata (van Elteren, "On the combination
// of independent two sample tests of Wilcoxon", 1960). The largest sum over
// boundaries is judged by permuting values within strata, which accounts for
// the choice among boundaries and needs no distribution.

#include <vector>

namespace optrail::tracker {

// One task's sessions: a value each, and the group (0, 1, ... in time order)
// it belongs to, such as the index of its commit.
struct Stratum {
  std::vector<double> values;
  std::vector<int> groups;
};

struct Shift {
  int boundary = 0;    // the first group after the rise; 0 if there is none
  double p_value = 1;  // one-sided
  // The median over strata of median(after) - median(before).
  double difference = 0;
  int strata = 0;  // with values on both sides
};

// Deterministic. `group_count` is one more than the largest group.
Shift LargestRise(const std::vector<Stratum>& strata, int group_count,
                  int permutations);

// `difference` of above for a given boundary; 0 without a stratum that has
// values on both sides.
double MedianDifference(const std::vector<Stratum>& strata, int boundary);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_RISE_H_
