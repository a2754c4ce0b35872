#ifndef OPTRAIL_TRACKER_COMPARE_RATIO_H_
#define OPTRAIL_TRACKER_COMPARE_RATIO_H_

// How much slower is the candidate? The ratio of two sets of process medians
// with its interval, and what could have been found at all.
//
//   ProcessGroups base = {{1.00, 1.02, .99}}, candidate = {{1.08, 1.06, 1.09}};
//   OPTRAIL_ASSIGN_OR_RETURN(Ratio r, CompareProcesses(base, candidate, {}));
//   // r.ratio 1.07, r.low .. r.high, r.p_greater
//
// The model (docs/gating.md): the logarithm of a process median is normal
// around the level of its run, which is normal around the level of the code. A
// process is one piece of evidence however many samples it took. The standard
// error is the larger of the pooled one (which identical code calls for) and
// Welch's; the degrees of freedom follow Satterthwaite. A spread known from
// earlier runs joins as a prior with its own degrees of freedom, unless it is
// quieter than what is seen now: a machine may be noisier today.
//
// It is not the place for several benchmarks at once: see compare.h.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace optrail::tracker {

// Process medians, grouped by run. All values are positive and finite.
using ProcessGroups = std::vector<std::vector<double>>;

// What earlier runs of the same series say about noise, as standard deviations
// of the logarithm.
struct SpreadPrior {
  double process_variance = 0;  // between processes of one run
  double degrees_of_freedom = 0;
};

// Pools the variance within each of `groups`; groups of one process say
// nothing.
SpreadPrior EstimateSpread(const ProcessGroups& groups);

struct RatioOptions {
  double confidence = .95;  // of the interval
  absl::optional<SpreadPrior> prior;
  // The prior never counts for more than this.
  double max_prior_degrees_of_freedom = 60;
  // No spread between processes is believed to be smaller than this: clocks
  // have a resolution, and a few processes can agree by chance.
  double min_process_spread = 1e-4;
};

struct Ratio {
  double ratio = 1;  // candidate / baseline, of geometric means of medians
  double low = 0;    // of the confidence interval
  double high = 0;
  double baseline = 0;   // median of process medians
  double candidate = 0;  // likewise

  double log_ratio = 0;
  double standard_error = 0;  // of log_ratio
  double degrees_of_freedom = 0;
  double p_greater = 1;  // one-sided: candidate above baseline by chance
  double p_less = 1;
  double p_two_sided = 1;

  // Mann-Whitney U of the process medians, as description: the probability that
  // a candidate process is above a baseline process, and the two-sided p.
  double probability_above = .5;
  double mann_whitney_p = 1;

  double process_spread = 0;  // standard deviation of the log between processes
  double run_spread = 0;      // between runs, beyond what processes explain
  int baseline_processes = 0;
  int candidate_processes = 0;
  int baseline_runs = 0;
};

// InvalidArgument for values that are not positive and finite;
// FailedPrecondition if one side has fewer than two processes and no prior
// helps: there is nothing that measures noise.
absl::StatusOr<Ratio> CompareProcesses(const ProcessGroups& baseline,
                                       const ProcessGroups& candidate,
                                       const RatioOptions& options);

// The smallest true relative increase (.05 is 5%) that a one-sided test at
// `alpha` finds with probability `power`, when the estimate must also reach
// `min_effect`.
double MinimumDetectableEffect(double standard_error, double degrees_of_freedom,
                               double alpha, double power, double min_effect);

// Processes per side at which that effect becomes at most `effect`, for a
// process spread measured as `process_spread`; at most `limit`, nullopt beyond.
absl::optional<int> ProcessesNeeded(double process_spread, double effect,
                                    double min_effect, double alpha,
                                    double power, int limit);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_RATIO_H_
