#include "tuning/model/gp_posterior.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "tuning/model/dense_ops.h"

namespace optrail::tuning {
namespace {

constexpr float kLeastVariance = 1e-10f;
constexpr double kLeastPivot = 1e-9;

}  // namespace

void CandidateSet::Add(const GpInput& input) {
  if (size_ % kBlockWidth == 0) {
    Block block;
    block.codes.resize(features_->groups().size() * kBlockWidth);
    block.sources.resize(static_cast<size_t>(sources_) * kBlockWidth);
    blocks_.push_back(std::move(block));
  }
  Block& block = blocks_.back();
  const int column = block.count++;
  for (size_t g = 0; g < features_->groups().size(); ++g) {
    block.codes[g * kBlockWidth + column] =
        features_->Code(features_->groups()[g], input.levels);
  }
  for (int k = 0; k < sources_; ++k) {
    block.sources[k * kBlockWidth + column] = input.sources[k];
  }
  ++size_;
}

void GpPosterior::Resize(int capacity) {
  const int n = trials();
  std::vector<double> factor(static_cast<size_t>(capacity) * capacity);
  std::vector<float> factor_float(factor.size());
  for (int i = 0; i < std::min(n, stride_); ++i) {
    for (int j = 0; j <= i; ++j) {
      factor[static_cast<size_t>(i) * capacity + j] =
          factor_[static_cast<size_t>(i) * stride_ + j];
      factor_float[static_cast<size_t>(i) * capacity + j] =
          factor_float_[static_cast<size_t>(i) * stride_ + j];
    }
  }
  factor_ = std::move(factor);
  factor_float_ = std::move(factor_float);
  stride_ = capacity;
}

void GpPosterior::Reset(const GaussianProcess& gp,
                        std::vector<GpInput> inputs) {
  gp_ = &gp;
  inputs_.clear();
  distance_tables_.clear();
  targets_.clear();
  whitened_.clear();
  pool_ = CandidateSet(features_, gp.sources());
  for (const GpInput& input : inputs) Append(input);
}

void GpPosterior::Append(const GpInput& input) {
  const int n = trials();
  if (n == stride_) Resize(std::max(64, n + n / 2));
  double* row = &factor_[static_cast<size_t>(n) * stride_];
  double pivot = gp_->Variance(input) + gp_->noise() + input.extra_noise;
  for (int j = 0; j < n; ++j) {
    const double* other = &factor_[static_cast<size_t>(j) * stride_];
    double rest = gp_->Covariance(input, inputs_[j]);
    for (int k = 0; k < j; ++k) rest -= row[k] * other[k];
    row[j] = rest / other[j];
    pivot -= row[j] * row[j];
  }
  row[n] = std::sqrt(std::max(pivot, kLeastPivot));
  float* row_float = &factor_float_[static_cast<size_t>(n) * stride_];
  for (int j = 0; j <= n; ++j) row_float[j] = static_cast<float>(row[j]);
  inputs_.push_back(input);
  whitened_.push_back(0.0f);
  distance_tables_.push_back(gp_->DistanceTable(input.levels));

  std::vector<float> factors(n);
  for (int j = 0; j < n; ++j) factors[j] = -row_float[j];
  const float scale = 1 / row_float[n];
  for (CandidateSet::Block& block : pool_.blocks_) {
    block.v.resize(static_cast<size_t>(n + 1) * kBlockWidth);
    float* out = &block.v[static_cast<size_t>(n) * kBlockWidth];
    Covariances(block, input, distance_tables_.back(), out);
    AddRows(block.v.data(), n, factors.data(), out);
    for (int c = 0; c < kBlockWidth; ++c) {
      out[c] *= scale;
      block.variance[c] -= out[c] * out[c];
    }
  }
}

void GpPosterior::Remember() {
  remembered_trials_ = trials();
  remembered_variance_.clear();
  for (const CandidateSet::Block& block : pool_.blocks_) {
    remembered_variance_.push_back(block.variance);
  }
}

void GpPosterior::Restore() {
  OPTRAIL_CHECK(remembered_variance_.size() == pool_.blocks_.size());
  const int n = remembered_trials_;
  inputs_.resize(n);
  distance_tables_.resize(n);
  whitened_.resize(n);
  for (size_t b = 0; b < pool_.blocks_.size(); ++b) {
    CandidateSet::Block& block = pool_.blocks_[b];
    block.v.resize(static_cast<size_t>(n) * kBlockWidth);
    block.variance = remembered_variance_[b];
  }
}

void GpPosterior::SetTargets(absl::Span<const double> targets) {
  targets_.assign(targets.begin(), targets.end());
  const int n = trials();
  std::vector<double> whitened(n, 0.0);
  for (int i = 0; i < static_cast<int>(targets.size()); ++i) {
    const double* row = &factor_[static_cast<size_t>(i) * stride_];
    double rest = targets[i];
    for (int j = 0; j < i; ++j) rest -= row[j] * whitened[j];
    whitened[i] = rest / row[i];
    whitened_[i] = static_cast<float>(whitened[i]);
  }
  for (CandidateSet::Block& block : pool_.blocks_) {
    std::fill(block.mean.begin(), block.mean.end(), 0.0f);
    AddRows(block.v.data(), n, whitened_.data(), block.mean.data());
  }
}

void GpPosterior::Covariances(const CandidateSet::Block& block,
                              const GpInput& input,
                              const std::vector<float>& distance_table,
                              float* out) const {
  float r2[kBlockWidth] = {};
  const float* table = distance_table.data();
  for (size_t g = 0; g < features_.groups().size(); ++g) {
    const uint16_t* codes = &block.codes[g * kBlockWidth];
    for (int c = 0; c < kBlockWidth; ++c) r2[c] += table[codes[c]];
    table += features_.groups()[g].codes;
  }
  Matern52(r2, kBlockWidth, out, nullptr);
  const float scale = static_cast<float>(gp_->scale());
  for (int c = 0; c < kBlockWidth; ++c) out[c] *= scale;
  for (int k = 0; k < gp_->sources(); ++k) {
    AddScaled(static_cast<float>(gp_->SourceWeight(k)) * input.sources[k],
              &block.sources[static_cast<size_t>(k) * kBlockWidth], kBlockWidth,
              out);
  }
}

void GpPosterior::Solve(CandidateSet::Block& block) const {
  const int n = trials();
  block.v.resize(static_cast<size_t>(n) * kBlockWidth);
  for (int i = 0; i < n; ++i) {
    Covariances(block, inputs_[i], distance_tables_[i],
                &block.v[static_cast<size_t>(i) * kBlockWidth]);
  }
  if (n > 0)
    ForwardSolveBlock(factor_float_.data(), stride_, n, block.v.data());
  block.mean.assign(kBlockWidth, 0.0f);
  AddRows(block.v.data(), n, whitened_.data(), block.mean.data());
  block.variance.assign(kBlockWidth, static_cast<float>(gp_->scale()));
  for (int k = 0; k < gp_->sources(); ++k) {
    const float weight = static_cast<float>(gp_->SourceWeight(k));
    const float* s = &block.sources[static_cast<size_t>(k) * kBlockWidth];
    for (int c = 0; c < kBlockWidth; ++c) {
      block.variance[c] += weight * s[c] * s[c];
    }
  }
  const float* v = block.v.data();
  for (int i = 0; i < n; ++i, v += kBlockWidth) {
    for (int c = 0; c < kBlockWidth; ++c) block.variance[c] -= v[c] * v[c];
  }
}

void GpPosterior::Predict(const CandidateSet& set, std::vector<float>& mean,
                          std::vector<float>& variance) const {
  mean.clear();
  variance.clear();
  CandidateSet::Block scratch;
  for (const CandidateSet::Block& block : set.blocks_) {
    scratch.codes = block.codes;
    scratch.sources = block.sources;
    Solve(scratch);
    for (int c = 0; c < block.count; ++c) {
      mean.push_back(scratch.mean[c]);
      variance.push_back(std::max(scratch.variance[c], kLeastVariance));
    }
  }
}

void GpPosterior::Keep(CandidateSet pool) {
  pool_ = std::move(pool);
  for (CandidateSet::Block& block : pool_.blocks_) Solve(block);
}

void GpPosterior::Extend(absl::Span<const GpInput> candidates) {
  const size_t first = pool_.size_ / kBlockWidth;
  for (const GpInput& candidate : candidates) pool_.Add(candidate);
  // Columns that were in the first of these blocks are solved again.
  for (size_t b = first; b < pool_.blocks_.size(); ++b) Solve(pool_.blocks_[b]);
}

float GpPosterior::mean(int candidate) const {
  return pool_.blocks_[candidate / kBlockWidth].mean[candidate % kBlockWidth];
}

float GpPosterior::variance(int candidate) const {
  return std::max(
      pool_.blocks_[candidate / kBlockWidth].variance[candidate % kBlockWidth],
      kLeastVariance);
}

std::vector<double> GpPosterior::MeansAtTrials() const {
  // y - its noise * alpha, with alpha = L^-T whitened.
  const int n = static_cast<int>(targets_.size());
  std::vector<double> alpha(n);
  for (int i = n - 1; i >= 0; --i) {
    double rest = whitened_[i];
    for (int j = i + 1; j < n; ++j) {
      rest -= factor_[static_cast<size_t>(j) * stride_ + i] * alpha[j];
    }
    alpha[i] = rest / factor_[static_cast<size_t>(i) * stride_ + i];
  }
  std::vector<double> means(n);
  for (int i = 0; i < n; ++i) {
    means[i] = targets_[i] - (gp_->noise() + inputs_[i].extra_noise) * alpha[i];
  }
  return means;
}

}  // namespace optrail::tuning
