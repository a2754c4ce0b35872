#include "tracker/compare/factor_posterior.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace optrail::tracker {
namespace {

// The factor's grid, in spreads of the prior, and of a common step, in
// logarithms. A bad run may be far beyond the prior's spread.
constexpr double kReach = 6, kLeastReach = .12;
constexpr int kGrid = 121;
constexpr double kStep = .01, kMostStep = .5;
// A common step is common to within this.
constexpr double kStepSpread = .008;
// The density of a change that is a benchmark's own: anything up to 65%.
constexpr double kOwnChange = 1;
// Shares of the suite that changed by a common step and each by its own, and
// how often that is so.
struct ChangedShare {
  double common, own, weight;
};
constexpr std::array<ChangedShare, 9> kChangedShares = {{{.005, .005, .5},
                                                         {.09, .01, .1},
                                                         {.01, .09, .1},
                                                         {.27, .03, .05},
                                                         {.03, .27, .05},
                                                         {.54, .06, .05},
                                                         {.06, .54, .05},
                                                         {.9, .05, .05},
                                                         {.1, .85, .05}}};
// Beside a known factor a benchmark has changed so often.
constexpr double kChanged = .2;
// More benchmarks than this say nothing new about which mode is right.
constexpr size_t kMostBenchmarks = 64;
constexpr double kTail = .01;
constexpr int kRefinements = 4;

double Density(double deviation, double variance) {
  return std::exp(-deviation * deviation / (2 * variance)) /
         std::sqrt(2 * std::acos(-1.) * variance);
}

// Not normalised, but for the bad runs' share.
double PriorDensity(const FactorPrior& prior, double factor) {
  const double z = factor / prior.spread;
  const double usual =
      std::exp(std::lgamma((prior.degrees + 1) / 2) -
               std::lgamma(prior.degrees / 2)) /
      std::sqrt(std::acos(-1.) * prior.degrees) / prior.spread *
      std::pow(1 + z * z / prior.degrees, -(prior.degrees + 1) / 2);
  // Lomax' distribution of shape 2, as for runs (lower_level.h).
  const double bad =
      factor > 0
          ? 2 / prior.bad_excess * std::pow(1 + factor / prior.bad_excess, -3)
          : 0;
  return (1 - prior.bad_share) * usual + prior.bad_share * bad;
}

double NoiseAt(const FactorBenchmark& benchmark, double factor) {
  return benchmark.noise_variance +
         benchmark.loading_variance * factor * factor;
}

// The likelihood of the run given a factor, over common steps and shares of
// changed benchmarks.
double Likelihood(const std::vector<FactorBenchmark>& benchmarks,
                  double factor) {
  std::vector<double> rests, variances, unchanged;
  for (const FactorBenchmark& benchmark : benchmarks) {
    rests.push_back(benchmark.deviation - benchmark.loading * factor);
    variances.push_back(NoiseAt(benchmark, factor));
    unchanged.push_back(Density(rests.back(), variances.back()));
  }
  double sum = 0;
  int steps = 0;
  for (double step = -kMostStep; step <= kMostStep; step += kStep, ++steps) {
    std::array<double, kChangedShares.size()> products;
    products.fill(1);
    for (size_t j = 0; j < benchmarks.size(); ++j) {
      const double common =
          Density(rests[j] - step, variances[j] + kStepSpread * kStepSpread);
      for (size_t k = 0; k < products.size(); ++k) {
        const ChangedShare& share = kChangedShares[k];
        products[k] *= (1 - share.common - share.own) * unchanged[j] +
                       share.common * common + share.own * kOwnChange;
      }
    }
    for (size_t k = 0; k < products.size(); ++k) {
      sum += kChangedShares[k].weight * products[k];
    }
  }
  return sum / steps;
}

// Near the mode: the mean of the benchmarks that agree with it.
void Refine(const std::vector<FactorBenchmark>& benchmarks,
            const FactorPrior& prior, FactorPosterior* posterior) {
  std::vector<double> precisions(benchmarks.size());
  double precision = 0, sum = 0;
  for (int i = 0; i < kRefinements; ++i) {
    precision = 1 / (prior.spread * prior.spread);
    sum = 0;
    for (size_t j = 0; j < benchmarks.size(); ++j) {
      precisions[j] = 0;
      const FactorBenchmark& one = benchmarks[j];
      if (std::isnan(one.deviation)) continue;
      const double variance = NoiseAt(one, posterior->factor);
      const double agrees =
          (1 - kChanged) *
          Density(one.deviation - one.loading * posterior->factor, variance);
      precisions[j] = agrees / (agrees + kChanged * kOwnChange) / variance;
      precision += precisions[j] * one.loading * one.loading;
      sum += precisions[j] * one.loading * one.deviation;
    }
    posterior->factor = sum / precision;
  }
  posterior->variance = 1 / precision;
  for (size_t j = 0; j < benchmarks.size(); ++j) {
    const FactorBenchmark& one = benchmarks[j];
    const double own = precisions[j] * one.loading;
    posterior->without.push_back(std::isnan(one.deviation)
                                     ? posterior->factor
                                     : (sum - own * one.deviation) /
                                           (precision - own * one.loading));
  }
}

}  // namespace

double FactorPosterior::Doubt(bool lower) const {
  constexpr double kInNoise = 3;  // standard errors
  return std::max(0., (lower ? factor - low : high - factor) -
                          kInNoise * std::sqrt(variance));
}

FactorPosterior PosteriorOf(const std::vector<FactorBenchmark>& benchmarks,
                            const FactorPrior& prior) {
  std::vector<FactorBenchmark> present;
  for (const FactorBenchmark& benchmark : benchmarks) {
    if (!std::isnan(benchmark.deviation)) present.push_back(benchmark);
  }
  FactorPosterior posterior;
  if (present.size() > kMostBenchmarks) {
    const size_t every = present.size() / kMostBenchmarks;
    for (size_t i = 0; i < kMostBenchmarks; ++i) {
      present[i] = present[i * every];
    }
    present.resize(kMostBenchmarks);
  }
  const double reach = std::max(kReach * prior.spread, kLeastReach);
  std::vector<double> places, weights;
  double total = 0;
  for (int i = 0; i < kGrid; ++i) {
    const double factor = reach * (2. * i / (kGrid - 1) - 1);
    places.push_back(factor);
    weights.push_back(PriorDensity(prior, factor) *
                      Likelihood(present, factor));
    total += weights.back();
  }
  const auto quantile = [&](double share) {
    double sum = 0;
    for (int i = 0; i < kGrid; ++i) {
      sum += weights[i];
      if (sum >= share * total) return places[i];
    }
    return places.back();
  };
  if (total > 0) {
    posterior.factor = quantile(.5);
    posterior.low = quantile(kTail);
    posterior.high = quantile(1 - kTail);
  }
  Refine(benchmarks, prior, &posterior);
  posterior.low = std::min(posterior.low, posterior.factor);
  posterior.high = std::max(posterior.high, posterior.factor);
  return posterior;
}

}  // namespace optrail::tracker
