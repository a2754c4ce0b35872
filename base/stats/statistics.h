#ifndef OPTRAIL_BASE_STATS_STATISTICS_H_
#define OPTRAIL_BASE_STATS_STATISTICS_H_

// The statistics of measurements that the stopwatch and the tracker share:
// where a sample lies, how wide it spreads, how sure that is, and whether two
// differ.
//
//   const double level = Median(samples_ns);
//   const Interval sure = MedianInterval(samples_ns, 0.95);
//
// Samples need not be sorted and must hold no NaN. A function of too few values
// to be defined returns NaN, never a made-up number. Probability functions live
// in base/stats/distributions.h.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optrail {

using Samples = absl::Span<const double>;

struct Interval {
  double low;
  double high;
  // What the interval really covers, at least what was asked for; less, where
  // there are too few values for that (then it spans all of them).
  double confidence;
};

// Location --------------------------------------------------------------------

double Mean(Samples x);
// The mean of the middle two for an even number.
double Median(Samples x);
// The p-quantile by linear interpolation between order statistics, type 7 of
// Hyndman and Fan ("Sample quantiles in statistical packages", 1996): the
// default of R and NumPy. p in [0, 1].
double Quantile(Samples x, double p);

// Spread ----------------------------------------------------------------------

// With n - 1; NaN for fewer than two values.
double Variance(Samples x);
double StandardDeviation(Samples x);
// The median distance from the median. `consistent` scales it by 1.4826, which
// makes it the standard deviation for normal data.
double MedianAbsoluteDeviation(Samples x, bool consistent = true);

// Intervals -------------------------------------------------------------------

// Between two order statistics, from the binomial distribution: holds for every
// continuous distribution. Symmetric in rank; the narrowest that covers
// `confidence`.
Interval MedianInterval(Samples x, double confidence);

// Student's t interval of the mean; NaN for fewer than two values.
Interval MeanInterval(Samples x, double confidence);

// Exact one-sided upper bound (Clopper and Pearson, 1934) of a probability
// after `successes` in `trials`. 0 of 2000 at 0.95: 0.0015.
double ClopperPearsonUpper(int64_t successes, int64_t trials,
                           double confidence);
double ClopperPearsonLower(int64_t successes, int64_t trials,
                           double confidence);

// Two samples -----------------------------------------------------------------

struct RankTest {
  double u;        // of y: pairs with y > x, ties counting half
  double p_value;  // two-sided
  bool exact;
};
// Mann-Whitney U (Wilcoxon rank sum): exact where neither sample exceeds 50
// values and there are no ties, else the normal approximation with correction
// for ties and continuity (as R's wilcox.test).
RankTest MannWhitneyU(Samples x, Samples y);

// Many tests ------------------------------------------------------------------

// Adjusted p-values (Benjamini and Hochberg, 1995), in the order given:
// rejecting those at most q keeps the false-discovery rate at q.
std::vector<double> BenjaminiHochberg(absl::Span<const double> p_values);

}  // namespace optrail

#endif  // OPTRAIL_BASE_STATS_STATISTICS_H_
