#include "tracker/compare/shared_factor.h"

#include <algorithm>
#include <cmath>

#include "base/stats/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

// Degrees of freedom of the t noise. Four is a usual compromise between robust
// and efficient.
constexpr double kNoiseDegrees = 4;
// Priors. A loading of 1 is that of code bound by the clock, 0 that of code
// bound by memory.
constexpr double kLoading = .7;
constexpr double kLoadingVariance = .6 * .6;
constexpr double kFactorVariance = .01 * .01;
constexpr double kFactorDegrees = 3;
constexpr double kNoiseShare = .3;  // of a benchmark's variance
constexpr double kNoisePriorDegrees = 2;
constexpr int kIterations = 40;
constexpr int kScoreIterations = 30;

double RobustWeight(double squared, double variance) {
  return (kNoiseDegrees + 1) / (kNoiseDegrees + squared / variance);
}

// The cost of a deviation in the logarithm of the t density.
double LogTail(double squared, double variance) {
  return (kNoiseDegrees + 1) / 2 *
         std::log1p(squared / variance / kNoiseDegrees);
}

}  // namespace

SharedFactor SharedFactor::None(int benchmarks) {
  SharedFactor none;
  none.loadings_.assign(benchmarks, 0);
  none.loading_variances_.assign(benchmarks, 0);
  none.noise_variances_.assign(benchmarks, 1);
  return none;
}

SharedFactor SharedFactor::Fit(const Deviations& deviations, double floor) {
  const int runs = static_cast<int>(deviations.size());
  const int benchmarks = runs == 0 ? 0 : static_cast<int>(deviations[0].size());
  SharedFactor fit = None(benchmarks);
  if (runs < kFewestRuns || benchmarks < kFewestBenchmarks) return fit;

  std::vector<double> least(benchmarks), prior(benchmarks), columns;
  for (int j = 0; j < benchmarks; ++j) {
    std::vector<double> column;
    for (const std::vector<double>& run : deviations) {
      if (!std::isnan(run[j])) column.push_back(run[j]);
    }
    const double variance = std::max(WinsorisedVariance(column), floor * floor);
    columns.push_back(variance);
    prior[j] = std::max(floor * floor, kNoiseShare * variance);
    fit.noise_variances_[j] = variance / 2;
  }
  fit.exists_ = true;
  fit.loadings_.assign(benchmarks, kLoading);
  fit.variance_ = Median(columns) / 2;
  std::vector<double> squares(benchmarks), products(benchmarks),
      information(benchmarks), noise(benchmarks);
  std::vector<std::vector<double>> weights(runs,
                                           std::vector<double>(benchmarks, 1));
  std::vector<int> counts(benchmarks, 0);
  for (const std::vector<double>& run : deviations) {
    for (int j = 0; j < benchmarks; ++j) counts[j] += !std::isnan(run[j]);
  }
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::fill(squares.begin(), squares.end(), 0);
    std::fill(products.begin(), products.end(), 0);
    double factor_squares = 0;
    std::vector<double> factors(runs), variances(runs);
    for (int r = 0; r < runs; ++r) {
      double precision = 1 / fit.variance_, sum = 0;
      for (int j = 0; j < benchmarks; ++j) {
        if (std::isnan(deviations[r][j])) continue;
        const double part =
            weights[r][j] * fit.loadings_[j] / fit.noise_variances_[j];
        precision += part * fit.loadings_[j];
        sum += part * deviations[r][j];
      }
      factors[r] = sum / precision;
      variances[r] = 1 / precision;
      const double square = factors[r] * factors[r] + variances[r];
      factor_squares += RobustWeight(square, fit.variance_) * square;
      for (int j = 0; j < benchmarks; ++j) {
        if (std::isnan(deviations[r][j])) continue;
        const double loading = fit.loadings_[j];
        const double residual = deviations[r][j] - loading * factors[r];
        weights[r][j] =
            RobustWeight(residual * residual + variances[r] * loading * loading,
                         fit.noise_variances_[j]);
        squares[j] += weights[r][j] * square;
        products[j] += weights[r][j] * factors[r] * deviations[r][j];
      }
    }
    fit.variance_ = (kFactorDegrees * kFactorVariance + factor_squares) /
                    (kFactorDegrees + runs);
    for (int j = 0; j < benchmarks; ++j) {
      const double precision =
          squares[j] / fit.noise_variances_[j] + 1 / kLoadingVariance;
      fit.loadings_[j] = (products[j] / fit.noise_variances_[j] +
                          kLoading / kLoadingVariance) /
                         precision;
      fit.loading_variances_[j] = 1 / precision;
      const double loading = fit.loadings_[j];
      double sum = kNoisePriorDegrees * prior[j];
      for (int r = 0; r < runs; ++r) {
        if (std::isnan(deviations[r][j])) continue;
        const double residual = deviations[r][j] - loading * factors[r];
        sum += weights[r][j] *
               (residual * residual + variances[r] * loading * loading);
      }
      fit.noise_variances_[j] =
          std::max(sum / (kNoisePriorDegrees + counts[j]), floor * floor / 4);
    }
  }
  return fit;
}

SharedFactor::Score SharedFactor::ScoreOf(
    const std::vector<double>& run) const {
  Score best;
  best.without.assign(run.size(), 0);
  best.without_variance.assign(run.size(), variance_);
  if (!exists_) return best;
  std::vector<double> present;
  for (const double value : run) {
    if (!std::isnan(value)) present.push_back(value);
  }
  if (present.empty()) return best;
  double best_likelihood = -1e300;
  // The t likelihood may have two modes: nothing is shared, or most is.
  for (const double start : {0., Median(present)}) {
    double factor = start;
    std::vector<double> weights(run.size());
    double precision = 0, sum = 0, likelihood = 0;
    for (int i = 0; i < kScoreIterations; ++i) {
      // A machine may be far from where it ever was, too.
      const double square = factor * factor;
      precision = RobustWeight(square, variance_) / variance_;
      sum = 0;
      likelihood = -LogTail(square, variance_);
      for (size_t j = 0; j < run.size(); ++j) {
        if (std::isnan(run[j])) continue;
        const double residual = run[j] - loadings_[j] * factor;
        const double squared = residual * residual;
        weights[j] = RobustWeight(squared, noise_variances_[j]);
        likelihood -= LogTail(squared, noise_variances_[j]);
        const double part = weights[j] * loadings_[j] / noise_variances_[j];
        precision += part * loadings_[j];
        sum += part * run[j];
      }
      factor = sum / precision;
    }
    if (likelihood <= best_likelihood) continue;
    best_likelihood = likelihood;
    best.factor = factor;
    best.variance = 1 / precision;
    for (size_t j = 0; j < run.size(); ++j) {
      double own_precision = 0, own_sum = 0;
      if (!std::isnan(run[j])) {
        const double part = weights[j] * loadings_[j] / noise_variances_[j];
        own_precision = part * loadings_[j];
        own_sum = part * run[j];
      }
      best.without[j] = (sum - own_sum) / (precision - own_precision);
      best.without_variance[j] = 1 / (precision - own_precision);
    }
  }
  return best;
}

}  // namespace optrail::tracker
