#ifndef OPTRAIL_BASE_STATS_PAIRED_TEST_H_
#define OPTRAIL_BASE_STATS_PAIRED_TEST_H_

// Is B slower than A? A test of paired log ratios that may be looked at after
// every round and stopped at any time, with no more false alarms for it.
//
//   PairedEvidence evidence = PairedTest(log_ratios, options);
//   while (evidence.verdict == PairedVerdict::kCannotTell) {
//     log_ratios.push_back(Round());
//     evidence = PairedTest(log_ratios, options);
//   }
//
// One round gives one value: log(B / A) of one fresh process of each. Values
// are taken as normal around the true effect with an unknown spread. For every
// effect m the likelihood of the data under "the effect is m" is compared with
// a mixture of larger and smaller ones: the t statistic's Bayes factor with the
// right Haar prior of the spread and a normal prior of variance g of the
// standardised effect,
//
//   B_g(t, n) = (1 + n g)^-1/2 ((1 + t^2/v) / (1 + t^2/(v (1 + n g))))^(n/2),
//   v = n - 1,
//
// averaged over a few g. If m is the truth, B is a martingale that begins at 1
// whatever the spread (Lai, "On confidence sequences", 1976; Wang and Ramdas,
// "Anytime-valid t-tests and confidence sequences for Gaussian means with
// unknown variance", 2025; the Bayes factor is in Rouder et al., "Bayesian t
// tests", 2009), so the chance that it *ever* reaches 1/alpha is at most alpha
// (Ville, 1939). The effects at which it has not are a confidence sequence: all
// its intervals hold together. docs/method/ab.md has what that costs in rounds.
//
// Shared machines are not normal: from eight values on, those further than
// three robust spreads from the median are pulled in to there, and the spread
// is widened for it. That is no martingale any more; that the rate holds all
// the same, for normal, skewed and outlier-ridden noise, is tested.
//
// It is not the place for runs measured apart, which no pair joins.

#include <vector>

#include "absl/types/span.h"

namespace optrail {

// Which way is worse is the caller's affair.
enum class PairedVerdict { kCannotTell, kHigher, kLower, kUnchanged };

struct PairedTestOptions {
  // Chance, over all looks, that an unchanged benchmark is ever called slower;
  // the same again for faster.
  double false_alarm_rate = .01;
  // Chance that one slowed by more than detect_effect is called unchanged.
  double miss_rate = .025;
  double min_effect = .03;     // smaller changes are never called a change
  double detect_effect = .05;  // larger ones must be excluded for "unchanged"
  // "Unchanged" excludes larger effects upwards only: B is not slower, it may
  // be faster. Who only asks whether anything got worse need not wait for more.
  bool upwards_only = false;
  // Fewer values than this give no verdict: normality is an approximation.
  int min_rounds = 5;
  // No spread of a ratio is believed to be smaller: clocks have a resolution.
  double min_spread = 1.5e-4;
  // The g of the mixture: variances of the standardised effect, here from an
  // effect half as large as the spread to one of thirty times it. A mixture
  // wastes at most a factor of its size against the best of them; who needs
  // intervals much narrower than the spread is better off with smaller ones.
  std::vector<double> variances = {.25, 4, 64, 1024};
};

struct PairedEvidence {
  // kHigher: the ratio is above 1.
  PairedVerdict verdict = PairedVerdict::kCannotTell;
  int rounds = 0;
  double log_ratio = 0;       // Winsorised mean
  double spread = 0;          // standard deviation of one value, robustly
  double standard_error = 0;  // of log_ratio
  // The confidence sequence that decides higher and lower (at twice
  // false_alarm_rate, one rate on either side) ...
  double low = 0, high = 0;
  // ... and the one that decides unchanged, at twice miss_rate: one rate on
  // either side.
  double inner_low = 0, inner_high = 0;
  // Anytime-valid: the smallest two-sided level, at most 1, at which "no
  // change" would have been rejected now.
  double p_value = 1;
};

// `log_ratios` are finite. Fewer than two: kCannotTell with infinite intervals.
PairedEvidence PairedTest(absl::Span<const double> log_ratios,
                          const PairedTestOptions& options);

// Rounds at which the verdict is clear if the mean and the spread stay what
// they are; `limit` where that is beyond it.
int PredictRounds(const PairedEvidence& evidence,
                  const PairedTestOptions& options, int limit);

// The logarithm of the mixture's B at a t statistic of n values, n >= 2.
double LogMixture(double t, int n, absl::Span<const double> variances);
// The t at which it reaches 1 / alpha; infinite where n is too small for that.
double CriticalT(int n, double alpha, absl::Span<const double> variances);

}  // namespace optrail

#endif  // OPTRAIL_BASE_STATS_PAIRED_TEST_H_
