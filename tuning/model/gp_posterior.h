#ifndef OPTRAIL_TUNING_MODEL_GP_POSTERIOR_H_
#define OPTRAIL_TUNING_MODEL_GP_POSTERIOR_H_

// GpPosterior is what a Gaussian process believes of many candidates after some
// trials, kept up to date trial by trial.
//
// With L the Cholesky factor of the trials' covariance and K the covariance of
// trials and candidates it keeps V = L^-1 K in single precision. A trial adds a
// row to V; mean and variance follow from V alone. So a trial costs (trials x
// candidates) multiplications, and only new parameters cost a solve.
//
//   GpPosterior posterior(features);
//   posterior.Reset(gp, inputs);
//   posterior.SetTargets(targets);
//   posterior.Predict(everything, mean, variance);  // once
//   posterior.Keep(the_promising);                  // then cheaply
//   posterior.Append(input);

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tuning/model/config_features.h"
#include "tuning/model/gaussian_process.h"

namespace optrail::tuning {

// Candidates packed in blocks of kBlockWidth columns.
class CandidateSet {
 public:
  CandidateSet(const ConfigFeatures& features, int sources)
      : features_(&features), sources_(sources) {}

  void Add(const GpInput& input);
  int size() const { return size_; }

 private:
  friend class GpPosterior;
  struct Block {
    int count = 0;
    std::vector<uint16_t> codes;  // groups x kBlockWidth
    std::vector<float> sources;   // sources x kBlockWidth
    // These belong to the posterior that keeps the set.
    std::vector<float> v;  // trials x kBlockWidth
    std::vector<float> mean, variance;
  };

  const ConfigFeatures* features_;
  int sources_;
  int size_ = 0;
  std::vector<Block> blocks_;
};

class GpPosterior {
 public:
  explicit GpPosterior(const ConfigFeatures& features)
      : features_(features), pool_(features, 0) {}

  // Forgets everything and takes these trials under these parameters. `gp` must
  // outlive the next Reset and keep its parameters until then.
  void Reset(const GaussianProcess& gp, std::vector<GpInput> inputs);

  // One more trial.
  void Append(const GpInput& input);

  // Restore forgets the trials appended since Remember: those that were only
  // supposed (fantasies). The pool must be the same.
  void Remember();
  void Restore();

  int trials() const { return static_cast<int>(inputs_.size()); }

  // One target per trial; trials without one (appended after) are taken to be
  // at their mean.
  void SetTargets(absl::Span<const double> targets);

  // Mean and variance (of the function, without noise) of all of `set`.
  void Predict(const CandidateSet& set, std::vector<float>& mean,
               std::vector<float>& variance) const;

  // The candidates to keep up to date, and more of them.
  void Keep(CandidateSet pool);
  void Extend(absl::Span<const GpInput> candidates);

  int pool_size() const { return pool_.size(); }
  float mean(int candidate) const;
  float variance(int candidate) const;

  // The mean at every trial with a target, its own target included.
  std::vector<double> MeansAtTrials() const;

 private:
  void Covariances(const CandidateSet::Block& block, const GpInput& input,
                   const std::vector<float>& distance_table, float* out) const;
  // Fills v, mean and variance.
  void Solve(CandidateSet::Block& block) const;
  void Resize(int capacity);

  const ConfigFeatures& features_;
  const GaussianProcess* gp_ = nullptr;
  std::vector<GpInput> inputs_;
  std::vector<std::vector<float>> distance_tables_;  // per trial
  // The lower triangle, `stride_` a row; in both precisions.
  int stride_ = 0;
  std::vector<double> factor_;
  std::vector<float> factor_float_;
  std::vector<float> whitened_;  // L^-1 targets; 0 for fantasies
  std::vector<double> targets_;
  CandidateSet pool_;
  int remembered_trials_ = 0;
  std::vector<std::vector<float>> remembered_variance_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_MODEL_GP_POSTERIOR_H_
