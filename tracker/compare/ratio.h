#ifndef OPTRAIL_TRACKER_COMPARE_RATIO_H_
#define OPTRAIL_TRACKER_COMPARE_RATIO_H_

// A ratio of two sides with its interval, and what could have been found.
//
//   Ratio ratio = RatioOf(log_ratio, standard_error, degrees_of_freedom, .95);
//   // ratio.ratio, ratio.low .. ratio.high, ratio.p_greater
//
// noise_model.h or base/stats/paired_test.h computes the numbers.

namespace optrail::tracker {

struct Ratio {
  double ratio = 1;  // candidate / baseline
  double low = 0;    // of the confidence interval
  double high = 0;
  // The two numbers that it is the ratio of: the level of the candidate, and
  // what the baseline would take on the machine as it was for the candidate.
  double baseline = 0;
  double candidate = 0;
  bool of_fastest = false;  // of the fastest samples of processes, not medians
  // That machine against the baseline's own: 1.03 is 3% slower.
  double machine = 1;

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
  double run_spread = 0;      // of the level of one run
  int baseline_processes = 0;
  int candidate_processes = 0;
  int baseline_runs = 0;
};

// The ratio, its interval and its p-values by Student's t.
Ratio RatioOf(double log_ratio, double standard_error,
              double degrees_of_freedom, double confidence);

// The smallest true relative increase (.05 is 5%) that a one-sided test, whose
// estimate must exceed `critical` standard errors, finds with probability
// `power`, when the estimate must also reach `min_effect`.
double MinimumDetectableEffect(double standard_error, double degrees_of_freedom,
                               double critical, double power,
                               double min_effect);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_RATIO_H_
