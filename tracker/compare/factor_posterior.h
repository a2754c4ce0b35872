#ifndef OPTRAIL_TRACKER_COMPARE_FACTOR_POSTERIOR_H_
#define OPTRAIL_TRACKER_COMPARE_FACTOR_POSTERIOR_H_

// How much of what a run's benchmarks share is the machine, and how sure that
// is: the same numbers may be a machine that is 8% slower and four benchmarks
// that improved, or a machine as ever and six that got worse.
//
//   const FactorPosterior posterior = PosteriorOf(benchmarks, prior);
//   z_j - loading_j * posterior.without[j]   // the machine taken out
//   posterior.low, posterior.high            // what else the machine may be
//
// The model: z_j = loading_j f + change_j + noise. The factor f is a draw from
// what the history shows (Student's t, or a bad run), so it is bounded by that.
// A share of the benchmarks changed, from hardly any to almost all: most of
// these by one common step, as a compiler's flag does, or most by their own.
// The posterior over f is computed on a grid.

#include <vector>

namespace optrail::tracker {

struct FactorBenchmark {
  double deviation = 0;  // NaN where the run lacks the benchmark
  double loading = 0;
  double loading_variance = 0;
  double noise_variance = 1;
};

// The prior of the factor that the history shows.
struct FactorPrior {
  double center = 0;  // of earlier runs; 0 is that of their lower level
  double spread = .01;
  double degrees = 3;
  // How often a run is a bad one, and by how much it is slower then.
  double bad_share = 0;
  double bad_excess = .03;
};

// Computes the prior from the factors of earlier runs. `variance` is that of
// the factor analysis, around 0; `extra` is what calibration leaves open. The
// factor of a bad run is one of a bad run (run_noise.h).
FactorPrior PriorOf(const std::vector<double>& factors, double variance,
                    double extra);

struct FactorPosterior {
  double factor = 0;    // by all benchmarks, where most of the probability is
  double variance = 0;  // of that, if the right benchmarks are believed
  // By all benchmarks but this one.
  std::vector<double> without;
  // The factor lies outside of these with a probability of .2% on either
  // side.
  double low = 0, high = 0;

  // By how much the factor may be less (`lower`) or more than its estimate,
  // beyond the estimate's error, which is in the noise of runs already.
  double Doubt(bool lower) const;
};

FactorPosterior PosteriorOf(const std::vector<FactorBenchmark>& benchmarks,
                            const FactorPrior& prior);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_FACTOR_POSTERIOR_H_
