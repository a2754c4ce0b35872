#include "tracker/compare/lower_level.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

// A value may be anything now and then: the density of that. So small that of
// five processes one may be the only undisturbed one where many are disturbed,
// all alike; where few are, a single low value is wild.
constexpr double kAnything = 1e-7;
// Of Lomax' distribution, whose mean is its scale. What was seen is told by an
// exponential well enough; what was never seen may be far worse.
constexpr double kTailShape = 2;
constexpr int kIterations = 12;
constexpr int kStarts = 3;  // from the lowest values, and from the median
constexpr int kFitIterations = 8;

// The density of a deviation from the level, with noise of `variance`.
double NoiseDensity(double deviation, double variance) {
  return std::exp(-deviation * deviation / (2 * variance)) /
         std::sqrt(2 * std::acos(-1.) * variance);
}

double SlowDensity(double deviation, const SlowValues& slow) {
  return deviation > 0
             ? slow.share / slow.excess * std::exp(-deviation / slow.excess)
             : 0;
}

// The probability that a value is no slow one.
double Undisturbed(double deviation, double variance, const SlowValues& slow) {
  const double noise = (1 - slow.share) * NoiseDensity(deviation, variance);
  return noise / (noise + SlowDensity(deviation, slow) + kAnything);
}

double LogLikelihood(absl::Span<const double> values,
                     absl::Span<const double> variances, const SlowValues& slow,
                     double level) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double deviation = values[i] - level;
    sum += std::log((1 - slow.share) * NoiseDensity(deviation, variances[i]) +
                    SlowDensity(deviation, slow) + kAnything);
  }
  return sum;
}

// The nearest mode of the likelihood.
double Settle(absl::Span<const double> values,
              absl::Span<const double> variances, const SlowValues& slow,
              double level) {
  for (int i = 0; i < kIterations; ++i) {
    double sum = 0, total = 0;
    for (size_t k = 0; k < values.size(); ++k) {
      const double weight =
          Undisturbed(values[k] - level, variances[k], slow) / variances[k];
      total += weight;
      sum += weight * values[k];
    }
    if (!(total > 0)) return level;
    const double next = sum / total;
    if (std::abs(next - level) < 1e-6) return next;
    level = next;
  }
  return level;
}

LowerLevel Describe(absl::Span<const double> values,
                    absl::Span<const double> variances, const SlowValues& slow,
                    double level) {
  LowerLevel found;
  found.level = level;
  double information = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    found.undisturbed.push_back(
        Undisturbed(values[i] - level, variances[i], slow));
    information += found.undisturbed.back() / variances[i];
  }
  found.variance =
      1 / std::max(information,
                   .2 / *std::max_element(variances.begin(), variances.end()));
  return found;
}

}  // namespace

double SlowValues::Tail(double by) const {
  return share * std::pow(1 + std::max(0., by) / excess, -kTailShape);
}

LowerLevel FindLowerLevel(absl::Span<const double> values,
                          absl::Span<const double> variances,
                          const SlowValues& slow) {
  if (values.empty()) return LowerLevel();
  std::vector<double> starts(values.begin(), values.end());
  std::sort(starts.begin(), starts.end());
  const double median = Median(starts);
  starts.resize(std::min<size_t>(starts.size(), kStarts));
  starts.push_back(median);
  double level = median;
  double best = -std::numeric_limits<double>::infinity();
  for (const double start : starts) {
    const double settled = Settle(values, variances, slow, start);
    const double likelihood = LogLikelihood(values, variances, slow, settled);
    if (likelihood <= best) continue;
    best = likelihood;
    level = settled;
  }
  return Describe(values, variances, slow, level);
}

SlowValuesFit FitSlowValues(const std::vector<ValueGroup>& groups,
                            const SlowValuesPrior& prior,
                            double least_variance) {
  SlowValuesFit fit;
  fit.variance =
      std::max({prior.variance, prior.start_variance, least_variance});
  fit.slow = prior.slow;
  for (int iteration = 0;; ++iteration) {
    // Where the level is, is looked for once; then it is followed.
    std::vector<LowerLevel> before = std::move(fit.levels);
    fit.levels.clear();
    const bool look = iteration == 0 || iteration == kFitIterations;
    double squares = 0, clean = 0, slow = 0, excess = 0, levels = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      const ValueGroup& group = groups[g];
      std::vector<double> variances;
      for (const double extra : group.extra_variances) {
        variances.push_back(fit.variance + extra);
      }
      fit.levels.push_back(
          look || group.values.empty()
              ? FindLowerLevel(group.values, variances, fit.slow)
              : Describe(group.values, variances, fit.slow,
                         Settle(group.values, variances, fit.slow,
                                before[g].level)));
      const LowerLevel& found = fit.levels.back();
      double agree = 0;
      for (size_t i = 0; i < group.values.size(); ++i) {
        const double deviation = group.values[i] - found.level;
        // What is known to be unsure tells little of the noise.
        const double share = found.undisturbed[i] * fit.variance / variances[i];
        squares += share * deviation * deviation * fit.variance / variances[i];
        clean += share;
        agree += share;
        if (deviation <= 0) continue;
        slow += 1 - found.undisturbed[i];
        excess += (1 - found.undisturbed[i]) * deviation;
      }
      levels += std::min(1., agree);
    }
    fit.degrees = std::max(0., clean - levels);
    if (iteration == kFitIterations) return fit;
    double values = 0;
    for (const ValueGroup& group : groups) values += group.values.size();
    fit.variance = std::max(
        least_variance, (prior.variance_degrees * prior.variance + squares) /
                            (prior.variance_degrees + fit.degrees));
    fit.slow.share = (prior.weight * prior.slow.share + slow) /
                     (prior.weight + std::max(values, slow));
    // Slow is what noise does not reach.
    fit.slow.excess = std::max(
        2 * std::sqrt(fit.variance),
        (prior.weight * prior.slow.share * prior.slow.excess + excess) /
            (prior.weight * prior.slow.share + slow));
  }
}

}  // namespace optrail::tracker
