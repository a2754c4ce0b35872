#include "base/stats/paired_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats/statistics.h"

namespace optrail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double LogBayesFactor(double t_squared, double log1p_t, int n, double g) {
  const double v = n - 1;
  const double shrink = 1 + n * g;
  return -.5 * std::log(shrink) +
         .5 * n * (log1p_t - std::log1p(t_squared / (v * shrink)));
}

void Decide(const PairedTestOptions& options, PairedEvidence& evidence) {
  evidence.verdict = PairedVerdict::kCannotTell;
  if (evidence.rounds < std::max(2, options.min_rounds)) return;
  const double counts = std::log1p(options.min_effect);
  const double matters = std::log1p(options.detect_effect);
  if (evidence.low > 0 && evidence.log_ratio >= counts) {
    evidence.verdict = PairedVerdict::kHigher;
  } else if (evidence.high < 0 && evidence.log_ratio <= -counts) {
    evidence.verdict = PairedVerdict::kLower;
  } else if (evidence.inner_high < matters &&
             (options.upwards_only || evidence.inner_low > -matters)) {
    evidence.verdict = PairedVerdict::kUnchanged;
  }
}

struct Winsorised {
  std::vector<double> values;
  // What the spread is to be multiplied by for what was pulled in.
  double widening = 1;
};

// Pulls outliers in to kReach spreads from the median, and widens the spread by
// (n - 1) / (h - 1) for the h values that stayed (Dixon and Tukey, "Approximate
// behavior of the distribution of Winsorized t", 1968).
Winsorised Winsorise(absl::Span<const double> values) {
  constexpr int kFewest = 8;  // fewer do not say what an outlier is
  constexpr double kReach = 3;
  Winsorised result;
  result.values.assign(values.begin(), values.end());
  const int n = static_cast<int>(values.size());
  if (n < kFewest) return result;
  const double median = Median(values);
  const double reach = kReach * MedianAbsoluteDeviation(values);
  int kept = 0;
  for (double& value : result.values) {
    const double inside = std::clamp(value, median - reach, median + reach);
    kept += inside == value;
    value = inside;
  }
  // More than half of the values are equal: no scale to go by.
  if (!(reach > 0)) {
    result.values.assign(values.begin(), values.end());
    return result;
  }
  result.widening = (n - 1.) / std::max(1, kept - 1);
  return result;
}

// Fills in what follows from rounds, log_ratio and spread.
void Conclude(const PairedTestOptions& options, PairedEvidence& evidence) {
  const int n = evidence.rounds;
  evidence.standard_error = evidence.spread / std::sqrt(n);
  const double outer =
      CriticalT(n, 2 * options.false_alarm_rate, options.variances) *
      evidence.standard_error;
  const double inner = CriticalT(n, 2 * options.miss_rate, options.variances) *
                       evidence.standard_error;
  evidence.low = evidence.log_ratio - outer;
  evidence.high = evidence.log_ratio + outer;
  evidence.inner_low = evidence.log_ratio - inner;
  evidence.inner_high = evidence.log_ratio + inner;
  evidence.p_value = std::min(
      1., std::exp(-LogMixture(evidence.log_ratio / evidence.standard_error, n,
                               options.variances)));
  Decide(options, evidence);
}

}  // namespace

double LogMixture(double t, int n, absl::Span<const double> variances) {
  const double t_squared = t * t;
  const double log1p_t = std::log1p(t_squared / (n - 1));
  // The sum over exp(largest), both as they grow.
  double largest = -kInfinity, sum = 0;
  for (const double g : variances) {
    const double log_factor = LogBayesFactor(t_squared, log1p_t, n, g);
    if (log_factor > largest) {
      sum = sum * std::exp(largest - log_factor) + 1;
      largest = log_factor;
    } else {
      sum += std::exp(log_factor - largest);
    }
  }
  return largest + std::log(sum / static_cast<double>(variances.size()));
}

double CriticalT(int n, double alpha, absl::Span<const double> variances) {
  const double threshold = -std::log(alpha);
  double high = 1;
  while (LogMixture(high, n, variances) < threshold) {
    high *= 2;
    if (high > 1e9) return kInfinity;
  }
  double low = 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = .5 * (low + high);
    (LogMixture(middle, n, variances) < threshold ? low : high) = middle;
  }
  return high;
}

PairedEvidence PairedTest(absl::Span<const double> log_ratios,
                          const PairedTestOptions& options) {
  PairedEvidence evidence;
  evidence.rounds = static_cast<int>(log_ratios.size());
  evidence.low = evidence.inner_low = -kInfinity;
  evidence.high = evidence.inner_high = kInfinity;
  evidence.standard_error = evidence.spread = kInfinity;
  if (log_ratios.empty()) return evidence;
  evidence.log_ratio = Mean(log_ratios);
  if (log_ratios.size() < 2) return evidence;
  const Winsorised values = Winsorise(log_ratios);
  evidence.log_ratio = Mean(values.values);
  evidence.spread = std::max(StandardDeviation(values.values) * values.widening,
                             options.min_spread);
  Conclude(options, evidence);
  return evidence;
}

int PredictRounds(const PairedEvidence& evidence,
                  const PairedTestOptions& options, int limit) {
  if (evidence.verdict != PairedVerdict::kCannotTell) return evidence.rounds;
  PairedEvidence later = evidence;
  if (evidence.rounds < 2) return std::min(limit, options.min_rounds);
  for (later.rounds = evidence.rounds + 1; later.rounds < limit;
       ++later.rounds) {
    Conclude(options, later);
    if (later.verdict != PairedVerdict::kCannotTell) break;
  }
  return std::min(later.rounds, limit);
}

}  // namespace optrail
