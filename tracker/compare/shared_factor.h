#ifndef OPTRAIL_TRACKER_COMPARE_SHARED_FACTOR_H_
#define OPTRAIL_TRACKER_COMPARE_SHARED_FACTOR_H_

// What the benchmarks of a run have in common: on some days a machine is slower
// for all that computes, whatever the code.
//
//   const SharedFactor factor = SharedFactor::Fit(deviations);
//   const SharedFactor::Score score = factor.ScoreOf(run);
//   run[j] - factor.loading(j) * score.without[j]   // the machine taken out
//
// The model is factor analysis with one factor and Student's t noise: the
// deviation of benchmark j in run r is z_rj = loading_j f_r + noise, where f is
// normal and the noise has a variance of its own for each benchmark. Loadings
// have a normal prior, variances have scaled inverse chi-squared ones; the fit
// is a posterior mode by expectation and maximisation (Rubin and Thayer, "EM
// algorithms for ML factor analysis", 1982; with t noise: Liu and Rubin, 1995).
// So one benchmark that changed does not move the factor, and where runs are
// few the factor is next to nothing.
//
// A benchmark is adjusted by what the *others* say of the factor (Hawkins,
// "Multivariate quality control based on regression-adjusted variables", 1991):
// its own change is never taken out with the machine.

#include <vector>

namespace optrail::tracker {

// One row per run, one column per benchmark: deviations of logarithms from the
// benchmark's level. NaN where a run lacks a benchmark.
using Deviations = std::vector<std::vector<double>>;

class SharedFactor {
 public:
  // With fewer than this many runs or benchmarks there is no factor.
  static constexpr int kFewestRuns = 4;
  static constexpr int kFewestBenchmarks = 3;

  // No noise is believed to be smaller than `floor`, a standard deviation.
  static SharedFactor Fit(const Deviations& deviations, double floor);
  // The factor of so many benchmarks that share nothing.
  static SharedFactor None(int benchmarks);

  struct Score {
    double factor = 0;            // by all benchmarks
    double variance = 0;          // of that estimate
    std::vector<double> without;  // by all benchmarks but this one
    std::vector<double> without_variance;
  };
  Score ScoreOf(const std::vector<double>& run) const;

  bool exists() const { return exists_; }
  double variance() const { return variance_; }  // of the factor between runs
  double loading(int j) const { return loadings_[j]; }
  double loading_variance(int j) const { return loading_variances_[j]; }

 private:
  bool exists_ = false;
  double variance_ = 0;
  std::vector<double> loadings_, loading_variances_, noise_variances_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_SHARED_FACTOR_H_
