#ifndef OPTRAIL_TUNING_MODEL_GAUSSIAN_PROCESS_H_
#define OPTRAIL_TUNING_MODEL_GAUSSIAN_PROCESS_H_

// GaussianProcess is a prior over functions of a config and the fit of its
// parameters to trials (Rasmussen and Williams, "Gaussian processes for machine
// learning", 2006, chapters 2 and 5). The covariance of two configs is
//
//   scale * Matern52(sum over features of weight_f * distance_f^2)
//     + sum over sources of weight_k * s_k(x) * s_k(x')
//
// plus noise on the diagonal. Features are those of ConfigFeatures; s_k is what
// another task measured (transfer). Ordinal and "differs" distances of the same
// knob have weights of their own: together they say both "near is alike" and
// "this value is special".
//
// The parameters are the mode of the posterior under log-normal priors, found
// by iRprop- (Igel and Huesken, 2003), which needs only the gradient's signs.

#include <vector>

#include "absl/types/span.h"
#include "tuning/model/config_features.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

// A config with what the sources know of it.
struct GpInput {
  Levels levels;
  std::vector<float> sources;
  // The variance of this input's target beyond that of all others, where it is
  // known to be less certain; in squared units of the targets.
  double extra_noise = 0;
};

class GaussianProcess {
 public:
  // `features` must outlive the process.
  GaussianProcess(const ConfigFeatures& features, int sources);

  // Improves the parameters for these targets (zero mean, unit variance) from
  // where they are, by at most so many steps. Cubic in the number of inputs.
  // Returns the logarithm of the targets' probability times the parameters'
  // prior (up to a constant that depends on the number of inputs alone):
  // processes with different sources can be compared by it.
  double Fit(absl::Span<const GpInput> inputs, absl::Span<const double> targets,
             int steps);

  double scale() const;
  double noise() const;
  int sources() const { return sources_; }
  double SourceWeight(int source) const;

  double Covariance(const GpInput& a, const GpInput& b) const;
  // The variance of the function (without noise) at a config.
  double Variance(const GpInput& a) const;

  // For each group of ConfigFeatures, the weighted squared distance of `levels`
  // to every code, one group after the other.
  std::vector<float> DistanceTable(absl::Span<const uint16_t> levels) const;

 private:
  struct Workspace;
  double LogPosterior(absl::Span<const double> targets, Workspace& work);
  void Gradient(Workspace& work) const;
  void UpdateKnobTables();
  // The weighted squared distances of one level of a knob to all its levels;
  // from the table where there is one, else written to `scratch`.
  const float* DistancesOf(int knob, int level,
                           std::vector<float>& scratch) const;
  float DistanceOf(int knob, int a, int b) const;

  const ConfigFeatures& features_;
  const int sources_;
  // Logarithms of: feature weights, scale, noise, source weights.
  std::vector<double> log_parameters_;
  std::vector<double> prior_mean_, prior_sd_;
  // By knob: indices of its features.
  std::vector<std::vector<int>> features_of_knob_;
  // knob_tables_[k][a * size + b]: weighted squared distance of two levels.
  // Empty for a knob of so many levels that the table would be too large.
  std::vector<std::vector<float>> knob_tables_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_MODEL_GAUSSIAN_PROCESS_H_
