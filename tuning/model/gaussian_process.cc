#include "tuning/model/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "tuning/model/dense_ops.h"

namespace optrail::tuning {
namespace {

struct LogNormal {
  double mean;
  double sd;
};

// Positions lie in [0, 1] and targets have unit variance, so a weight of one
// means that the whole range of a knob matters about as much as it can.
constexpr LogNormal kOrdinalWeight = {0, 2};
// That a single value is special is the exception.
constexpr LogNormal kIndicatorWeight = {-2, 2};
// Targets are cut above and tried where they are low: the function goes far
// beyond the unit variance of what was seen.
constexpr LogNormal kScale = {2, 1};
constexpr LogNormal kNoise = {-4.605170186, 1.5};  // log 0.01
// The prior of all sources together: many must not explain more than few.
constexpr LogNormal kSourceWeights = {-2, 1.5};

// Keeps nearly equal configs from making the matrix singular.
constexpr double kJitter = 1e-6;

// Distances of more levels are not tabled: the table is quadratic in them.
constexpr int kTabledLevels = 512;

constexpr double kFirstStep = 0.1, kLeastStep = 1e-3, kLargestStep = 1.0;

}  // namespace

// Buffers that the steps of one fit share. Pairs have j < i, row by row.
struct GaussianProcess::Workspace {
  int n = 0;
  size_t pairs = 0;
  std::vector<std::vector<float>> distances;       // per feature, per pair
  std::vector<std::vector<float>> products;        // per source, per pair
  std::vector<std::vector<float>> squares;         // per source, per input
  std::vector<float> r2, value, slope;             // per pair
  std::vector<float> by_value, by_slope;           // per pair: dL/dk parts
  std::vector<double> factor, inverse, precision;  // n x n
  std::vector<double> alpha;
  std::vector<double> extra_noise;  // per input
  std::vector<double> gradient;
};

GaussianProcess::GaussianProcess(const ConfigFeatures& features, int sources)
    : features_(features), sources_(sources) {
  const auto add = [this](LogNormal prior) {
    prior_mean_.push_back(prior.mean);
    prior_sd_.push_back(prior.sd);
  };
  for (const Feature& feature : features.features()) {
    add(feature.indicator ? kIndicatorWeight : kOrdinalWeight);
  }
  add(kScale);
  add(kNoise);
  for (int k = 0; k < sources; ++k) {
    add({kSourceWeights.mean - std::log(sources), kSourceWeights.sd});
  }
  log_parameters_ = prior_mean_;
  features_of_knob_.resize(features_.knob_sizes().size());
  for (size_t f = 0; f < features_.features().size(); ++f) {
    features_of_knob_[features_.features()[f].knob].push_back(
        static_cast<int>(f));
  }
  UpdateKnobTables();
}

double GaussianProcess::scale() const {
  return std::exp(log_parameters_[features_.features().size()]);
}

double GaussianProcess::noise() const {
  return std::exp(log_parameters_[features_.features().size() + 1]) + kJitter;
}

double GaussianProcess::SourceWeight(int source) const {
  return std::exp(log_parameters_[features_.features().size() + 2 + source]);
}

float GaussianProcess::DistanceOf(int knob, int a, int b) const {
  if (!knob_tables_[knob].empty()) {
    return knob_tables_[knob][a * features_.knob_sizes()[knob] + b];
  }
  float distance = 0;
  for (const int f : features_of_knob_[knob]) {
    distance += static_cast<float>(std::exp(log_parameters_[f])) *
                ConfigFeatures::SquaredDistance(features_.features()[f], a, b);
  }
  return distance;
}

const float* GaussianProcess::DistancesOf(int knob, int level,
                                          std::vector<float>& scratch) const {
  const int size = features_.knob_sizes()[knob];
  if (!knob_tables_[knob].empty()) return &knob_tables_[knob][level * size];
  scratch.assign(size, 0.0f);
  for (const int f : features_of_knob_[knob]) {
    const Feature& feature = features_.features()[f];
    const float weight = static_cast<float>(std::exp(log_parameters_[f]));
    for (int other = 0; other < size; ++other) {
      scratch[other] +=
          weight * ConfigFeatures::SquaredDistance(feature, level, other);
    }
  }
  return scratch.data();
}

void GaussianProcess::UpdateKnobTables() {
  const auto sizes = features_.knob_sizes();
  knob_tables_.assign(sizes.size(), {});
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int size = sizes[k];
    if (size > kTabledLevels) continue;
    std::vector<float> table, row;
    for (int level = 0; level < size; ++level) {
      DistancesOf(static_cast<int>(k), level, row);
      table.insert(table.end(), row.begin(), row.end());
    }
    knob_tables_[k] = std::move(table);
  }
}

double GaussianProcess::Covariance(const GpInput& a, const GpInput& b) const {
  float r2 = 0;
  for (size_t k = 0; k < knob_tables_.size(); ++k) {
    r2 += DistanceOf(static_cast<int>(k), a.levels[k], b.levels[k]);
  }
  const double t = std::sqrt(5.0 * r2);
  double covariance = scale() * (1 + t + t * t / 3) * std::exp(-t);
  for (int k = 0; k < sources_; ++k) {
    covariance += SourceWeight(k) * a.sources[k] * b.sources[k];
  }
  return covariance;
}

double GaussianProcess::Variance(const GpInput& a) const {
  double variance = scale();
  for (int k = 0; k < sources_; ++k) {
    variance += SourceWeight(k) * a.sources[k] * a.sources[k];
  }
  return variance;
}

std::vector<float> GaussianProcess::DistanceTable(
    absl::Span<const uint16_t> levels) const {
  std::vector<float> all;
  for (const ConfigFeatures::Group& group : features_.groups()) {
    // Grown knob by knob; the last one varies fastest.
    std::vector<float> table = {0.0f}, grown, scratch;
    for (const int k : group.knobs) {
      const int size = features_.knob_sizes()[k];
      const float* own = DistancesOf(k, levels[k], scratch);
      grown.resize(table.size() * size);
      float* out = grown.data();
      for (const float head : table) {
        for (int level = 0; level < size; ++level) *out++ = head + own[level];
      }
      table.swap(grown);
    }
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

double GaussianProcess::LogPosterior(absl::Span<const double> targets,
                                     Workspace& work) {
  const int n = work.n;
  const size_t features = features_.features().size();
  std::fill(work.r2.begin(), work.r2.end(), 0.0f);
  for (size_t f = 0; f < features; ++f) {
    AddScaled(static_cast<float>(std::exp(log_parameters_[f])),
              work.distances[f].data(), work.pairs, work.r2.data());
  }
  Matern52(work.r2.data(), work.pairs, work.value.data(), work.slope.data());
  // by_value serves as the covariance here; Gradient overwrites it.
  std::vector<float>& covariance = work.by_value;
  std::fill(covariance.begin(), covariance.end(), 0.0f);
  AddScaled(static_cast<float>(scale()), work.value.data(), work.pairs,
            covariance.data());
  for (int k = 0; k < sources_; ++k) {
    AddScaled(static_cast<float>(SourceWeight(k)), work.products[k].data(),
              work.pairs, covariance.data());
  }
  size_t pair = 0;
  for (int i = 0; i < n; ++i) {
    double* row = &work.factor[static_cast<size_t>(i) * n];
    for (int j = 0; j < i; ++j) row[j] = covariance[pair++];
    row[i] = scale() + noise() + work.extra_noise[i];
    for (int k = 0; k < sources_; ++k) {
      row[i] += SourceWeight(k) * work.squares[k][i];
    }
  }
  if (!Cholesky(work.factor.data(), n)) {
    return -std::numeric_limits<double>::infinity();
  }
  InvertLower(work.factor.data(), n, work.inverse.data());
  double log_posterior = 0;
  std::fill(work.alpha.begin(), work.alpha.end(), 0.0);
  for (int i = 0; i < n; ++i) {
    const double* row = &work.inverse[static_cast<size_t>(i) * n];
    double whitened = 0;
    for (int j = 0; j <= i; ++j) whitened += row[j] * targets[j];
    for (int j = 0; j <= i; ++j) work.alpha[j] += whitened * row[j];
    log_posterior -= 0.5 * whitened * whitened - std::log(row[i]);
  }
  for (size_t p = 0; p < log_parameters_.size(); ++p) {
    const double z = (log_parameters_[p] - prior_mean_[p]) / prior_sd_[p];
    log_posterior -= 0.5 * z * z;
  }
  return log_posterior;
}

void GaussianProcess::Gradient(Workspace& work) const {
  const int n = work.n;
  const size_t features = features_.features().size();
  GramOfLower(work.inverse.data(), n, work.precision.data());
  std::vector<double>& gradient = work.gradient;
  double trace = 0;
  std::vector<double> source_trace(sources_, 0.0);
  size_t pair = 0;
  for (int i = 0; i < n; ++i) {
    const double* row = &work.precision[static_cast<size_t>(i) * n];
    for (int j = 0; j < i; ++j, ++pair) {
      work.by_value[pair] =
          static_cast<float>(work.alpha[i] * work.alpha[j] - row[j]);
    }
    const double diagonal = 0.5 * (work.alpha[i] * work.alpha[i] - row[i]);
    trace += diagonal;
    for (int k = 0; k < sources_; ++k) {
      source_trace[k] += diagonal * work.squares[k][i];
    }
  }
  for (size_t p = 0; p < work.pairs; ++p) {
    work.by_slope[p] = work.by_value[p] * work.slope[p];
  }
  for (size_t f = 0; f < features; ++f) {
    gradient[f] =
        std::exp(log_parameters_[f]) * scale() *
        Dot(work.by_slope.data(), work.distances[f].data(), work.pairs);
  }
  gradient[features] =
      scale() *
      (Dot(work.by_value.data(), work.value.data(), work.pairs) + trace);
  gradient[features + 1] = noise() * trace;
  for (int k = 0; k < sources_; ++k) {
    gradient[features + 2 + k] =
        SourceWeight(k) *
        (Dot(work.by_value.data(), work.products[k].data(), work.pairs) +
         source_trace[k]);
  }
  for (size_t p = 0; p < gradient.size(); ++p) {
    gradient[p] -=
        (log_parameters_[p] - prior_mean_[p]) / (prior_sd_[p] * prior_sd_[p]);
  }
}

double GaussianProcess::Fit(absl::Span<const GpInput> inputs,
                            absl::Span<const double> targets, int steps) {
  const int n = static_cast<int>(inputs.size());
  const size_t parameters = log_parameters_.size();
  Workspace work;
  work.n = n;
  work.pairs = static_cast<size_t>(n) * (n - 1) / 2;
  const auto pairwise = [&](auto distance) {
    std::vector<float> result(work.pairs);
    size_t pair = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j)
        result[pair++] = distance(inputs[i], inputs[j]);
    }
    return result;
  };
  for (const Feature& feature : features_.features()) {
    work.distances.push_back(
        pairwise([&feature](const GpInput& a, const GpInput& b) {
          return ConfigFeatures::SquaredDistance(
              feature, a.levels[feature.knob], b.levels[feature.knob]);
        }));
  }
  for (int k = 0; k < sources_; ++k) {
    work.products.push_back(pairwise([k](const GpInput& a, const GpInput& b) {
      return a.sources[k] * b.sources[k];
    }));
    work.squares.emplace_back();
    for (const GpInput& input : inputs) {
      work.squares[k].push_back(input.sources[k] * input.sources[k]);
    }
  }
  for (std::vector<float>* list :
       {&work.r2, &work.value, &work.slope, &work.by_value, &work.by_slope}) {
    list->resize(work.pairs);
  }
  for (std::vector<double>* matrix :
       {&work.factor, &work.inverse, &work.precision}) {
    matrix->resize(static_cast<size_t>(n) * n);
  }
  work.alpha.resize(n);
  for (const GpInput& input : inputs) {
    work.extra_noise.push_back(input.extra_noise);
  }
  work.gradient.resize(parameters);

  std::vector<double> best = log_parameters_;
  double best_value = -std::numeric_limits<double>::infinity();
  std::vector<double> step(parameters, kFirstStep), last(parameters, 0.0);
  for (int s = 0; s < steps; ++s) {
    const double value = LogPosterior(targets, work);
    if (!std::isfinite(value)) {
      // Numerically singular: start over from the best with more noise.
      log_parameters_ = best;
      log_parameters_[features_.features().size() + 1] += 1;
      best = log_parameters_;
      continue;
    }
    if (value > best_value) {
      best_value = value;
      best = log_parameters_;
    }
    Gradient(work);
    for (size_t p = 0; p < parameters; ++p) {
      double g = work.gradient[p];
      if (g * last[p] > 0) {
        step[p] = std::min(step[p] * 1.2, kLargestStep);
      } else if (g * last[p] < 0) {
        step[p] = std::max(step[p] * 0.5, kLeastStep);
        g = 0;
      }
      if (g != 0) log_parameters_[p] += std::copysign(step[p], g);
      last[p] = g;
    }
  }
  log_parameters_ = best;
  UpdateKnobTables();
  return best_value;
}

}  // namespace optrail::tuning
