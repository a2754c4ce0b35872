#include "tracker/compare/factor_posterior.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tracker/compare/lower_level.h"
#include "tracker/compare/run_noise.h"

namespace optrail::tracker {
namespace {

// The factor's grid, in spreads of the prior, and of a common step, in
// logarithms. A bad run may be far beyond the prior's spread.
constexpr double kReach = 6, kLeastReach = .12;
constexpr int kGrid = 121;
constexpr double kStep = .01, kMostStep = .5;
// Half of the common steps differ by this between benchmarks, the others are
// equal to within the noise.
constexpr double kStepSpread = .008;
constexpr double kEqualSteps = .5;
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
// The probability that a benchmark changed beside a known factor.
constexpr double kChanged = .2;
// More benchmarks than this say nothing new about which mode is right.
constexpr size_t kMostBenchmarks = 64;
constexpr double kTail = .002;
constexpr int kRefinements = 4;
// The spread of the factor where few runs tell, and what that is worth.
constexpr double kFactorSpread = .01, kFactorDegrees = 3;

double Density(double deviation, double variance) {
  return std::exp(-deviation * deviation / (2 * variance)) /
         std::sqrt(2 * std::acos(-1.) * variance);
}

// Not normalised, but for the bad runs' share.
double PriorDensity(const FactorPrior& prior, double factor) {
  factor -= prior.center;
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

// The baseline's runs had a factor, too, `prior.center` in the mean: an error
// of the loading counts by the distance from that.
double NoiseAt(const FactorBenchmark& benchmark, const FactorPrior& prior,
               double factor) {
  factor -= prior.center;
  return benchmark.noise_variance +
         benchmark.loading_variance * factor * factor;
}

// The run given a factor: what is left of each benchmark, and its noise.
struct Rests {
  std::vector<double> values, variances, unchanged;

  Rests(const std::vector<FactorBenchmark>& benchmarks,
        const FactorPrior& prior, double factor) {
    for (const FactorBenchmark& benchmark : benchmarks) {
      values.push_back(benchmark.deviation - benchmark.loading * factor);
      variances.push_back(NoiseAt(benchmark, prior, factor));
      unchanged.push_back(Density(values.back(), variances.back()));
    }
  }

  // The likelihood of a common step, over shares of changed benchmarks. Not of
  // an equal step of all of them, which the machine alone explains as well.
  double OfStep(double step, double step_variance) const {
    std::array<double, kChangedShares.size()> products, all;
    products.fill(1);
    all.fill(step_variance > 0 ? 0 : 1);
    for (size_t j = 0; j < values.size(); ++j) {
      const double common =
          Density(values[j] - step, variances[j] + step_variance);
      for (size_t k = 0; k < products.size(); ++k) {
        const ChangedShare& share = kChangedShares[k];
        products[k] *= (1 - share.common - share.own) * unchanged[j] +
                       share.common * common + share.own * kOwnChange;
        all[k] *= share.common * common;
      }
    }
    double sum = 0;
    for (size_t k = 0; k < products.size(); ++k) {
      sum += kChangedShares[k].weight * (products[k] - all[k]);
    }
    return sum;
  }

  // The width of the mode of equal steps at benchmark j, as a share of all
  // steps. The benchmarks that agree with j have the same mode and share it.
  double ShareOfStep(size_t j) const {
    if (std::abs(values[j]) > kMostStep) return 0;
    double agree = 0;
    for (const double value : values) {
      const double distance = value - values[j];
      agree += distance * distance < 4 * variances[j];
    }
    return std::sqrt(2 * std::acos(-1.) * variances[j] / agree) / agree /
           (2 * kMostStep);
  }
};

// The likelihood of the run given a factor, over common steps.
double Likelihood(const std::vector<FactorBenchmark>& benchmarks,
                  const FactorPrior& prior, double factor) {
  const Rests rests(benchmarks, prior, factor);
  double differing = 0, equal = 0;
  int steps = 0;
  for (double step = -kMostStep; step <= kMostStep; step += kStep, ++steps) {
    differing += rests.OfStep(step, kStepSpread * kStepSpread);
  }
  for (size_t j = 0; j < benchmarks.size(); ++j) {
    const double share = rests.ShareOfStep(j);
    if (share > 0) equal += share * rests.OfStep(rests.values[j], 0);
  }
  return (1 - kEqualSteps) * differing / steps + kEqualSteps * equal;
}

// Where the posterior is computed, ascending: on a grid, and where a benchmark
// that did not change has it, since modes may be narrower than the grid.
std::vector<double> PlacesOf(const std::vector<FactorBenchmark>& benchmarks,
                             const FactorPrior& prior) {
  constexpr double kFollows = .3;  // the loading of one that tells
  const double reach = std::max(kReach * prior.spread, kLeastReach);
  std::vector<double> places;
  for (int i = 0; i < kGrid; ++i) {
    places.push_back(prior.center + reach * (2. * i / (kGrid - 1) - 1));
  }
  for (const FactorBenchmark& benchmark : benchmarks) {
    const double place = benchmark.deviation / benchmark.loading;
    if (std::abs(benchmark.loading) > kFollows &&
        std::abs(place - prior.center) < reach) {
      places.push_back(place);
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

// Near the mode: the mean of the benchmarks that agree with it.
void Refine(const std::vector<FactorBenchmark>& benchmarks,
            const FactorPrior& prior, FactorPosterior* posterior) {
  std::vector<double> precisions(benchmarks.size());
  double precision = 0, sum = 0;
  for (int i = 0; i < kRefinements; ++i) {
    precision = 1 / (prior.spread * prior.spread);
    sum = precision * prior.center;
    for (size_t j = 0; j < benchmarks.size(); ++j) {
      precisions[j] = 0;
      const FactorBenchmark& one = benchmarks[j];
      if (std::isnan(one.deviation)) continue;
      const double variance = NoiseAt(one, prior, posterior->factor);
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

FactorPrior PriorOf(const std::vector<double>& factors, double variance,
                    double extra) {
  ValueGroup group;
  group.values = factors;
  group.extra_variances.assign(factors.size(), 0);
  SlowValuesPrior expected;
  expected.variance = kFactorSpread * kFactorSpread;
  expected.variance_degrees = kFactorDegrees;
  expected.slow = kSlowRuns;
  expected.weight = kSlowRunsWeight;
  const SlowValuesFit fit =
      FitSlowValues({group}, expected, kLeastRunSpread * kLeastRunSpread);
  FactorPrior prior;
  prior.center = fit.levels.front().level;
  prior.spread = std::sqrt(
      std::max(fit.variance, variance - prior.center * prior.center) + extra);
  prior.degrees = kFactorDegrees + static_cast<double>(factors.size()) - 1;
  prior.bad_share = fit.slow.share;
  prior.bad_excess = fit.slow.excess;
  return prior;
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
  const std::vector<double> places = PlacesOf(present, prior);
  std::vector<double> weights;
  double total = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const double before = places[i == 0 ? i : i - 1];
    const double after = places[std::min(i + 1, places.size() - 1)];
    weights.push_back((after - before) / 2 * PriorDensity(prior, places[i]) *
                      Likelihood(present, prior, places[i]));
    total += weights.back();
  }
  const auto quantile = [&](double share) {
    double sum = 0;
    for (size_t i = 0; i < places.size(); ++i) {
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
