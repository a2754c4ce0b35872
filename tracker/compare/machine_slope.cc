#include "tracker/compare/machine_slope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/stats/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

// Slopes before anything is known, and the standard deviations of that.
constexpr std::array<double, MachineState::kWitnesses> kSlopes = {
    .9, .5, .5, .075, .075, .05};
constexpr std::array<double, MachineState::kWitnesses> kSpreads = {
    .4, .354, .354, .177, .177, .1};
// What a neighbour may do to a benchmark that it never disturbed so far.
constexpr std::array<double, MachineState::kWitnesses> kAtWorst = {0, 0, 0,
                                                                   0, 0, .1};
constexpr int kIterations = 10;
constexpr double kFirstScale = .03, kLeastScale = .005;
constexpr double kPriorValues = 8;  // what kFirstScale is worth
// The quantile of the loops' times that stands for a calm machine.
constexpr double kCalm = .1;

}  // namespace

// Of a symmetric positive definite matrix, by Gauss and Jordan's elimination,
// which needs no pivots there.
MachineSlope::Matrix MachineSlope::Inverse(Matrix m) {
  Matrix inverse = {};
  for (int i = 0; i < kStates; ++i) inverse[i][i] = 1;
  for (int i = 0; i < kStates; ++i) {
    const double pivot = m[i][i];
    for (int k = 0; k < kStates; ++k) {
      m[i][k] /= pivot;
      inverse[i][k] /= pivot;
    }
    for (int row = 0; row < kStates; ++row) {
      if (row == i) continue;
      const double factor = m[row][i];
      for (int k = 0; k < kStates; ++k) {
        m[row][k] -= factor * m[i][k];
        inverse[row][k] -= factor * inverse[i][k];
      }
    }
  }
  return inverse;
}

MachineSlope MachineSlope::Fit(absl::Span<const double> values,
                               absl::Span<const MachineState> states,
                               double processes) {
  MachineSlope fit;
  fit.exists_ = true;
  std::vector<Vector> x;
  for (const MachineState& state : states) x.push_back(state.values);
  for (int k = 0; k < kStates; ++k) {
    std::vector<double> column;
    for (const Vector& row : x) column.push_back(row[k]);
    fit.calm_[k] = Quantile(column, kCalm);
  }
  const size_t n = values.size();
  fit.slope_ = kSlopes;
  double scale = kFirstScale;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<double> rests;
    for (size_t i = 0; i < n; ++i) {
      rests.push_back(values[i] - fit.Explains(states[i]));
    }
    const double level = HuberLocation(rests, scale);
    for (double& rest : rests) rest -= level;
    scale = std::max(
        kLeastScale,
        std::sqrt((kPriorValues * kFirstScale * kFirstScale +
                   static_cast<double>(n) * WinsorisedVariance(rests)) /
                  (kPriorValues + static_cast<double>(n))));
    // Weighted means out, then the normal equations with the prior.
    double total = 0, mean = 0;
    Vector means = {};
    std::vector<double> weights;
    for (size_t i = 0; i < n; ++i) {
      weights.push_back(HuberWeight(rests[i], scale));
      total += weights[i];
      mean += weights[i] * values[i];
      for (int k = 0; k < kStates; ++k) means[k] += weights[i] * x[i][k];
    }
    mean /= total;
    for (double& m : means) m /= total;
    Matrix precision = {};
    Vector right = {};
    for (int k = 0; k < kStates; ++k) {
      precision[k][k] = 1 / (kSpreads[k] * kSpreads[k]);
      right[k] = precision[k][k] * kSlopes[k];
    }
    for (size_t i = 0; i < n; ++i) {
      const double w =
          weights[i] / (scale * scale) / std::sqrt(std::max(1., processes));
      for (int k = 0; k < kStates; ++k) {
        const double step = w * (x[i][k] - means[k]);
        right[k] += step * (values[i] - mean);
        for (int l = 0; l < kStates; ++l) {
          precision[k][l] += step * (x[i][l] - means[l]);
        }
      }
    }
    fit.covariance_ = Inverse(precision);
    fit.slope_ = {};
    for (int k = 0; k < kStates; ++k) {
      for (int l = 0; l < kStates; ++l) {
        fit.slope_[k] += fit.covariance_[k][l] * right[l];
      }
    }
  }
  return fit;
}

double MachineSlope::Explains(const MachineState& state) const {
  if (!exists_) return 0;
  MachineState step;
  for (int k = 0; k < kStates; ++k) step.values[k] = state.values[k] - calm_[k];
  return Effect(step);
}

double MachineSlope::Disturbance(const MachineState& state) const {
  const Vector& x = state.values;
  double sum = 0;
  for (int k = 1; k < kStates; ++k) {
    sum += std::max(kAtWorst[k], slope_[k]) * std::max(0., x[k] - calm_[k]);
  }
  return sum;
}

double MachineSlope::Effect(const MachineState& step) const {
  const Vector& x = step.values;
  double sum = 0;
  for (int k = 0; k < kStates; ++k) sum += slope_[k] * x[k];
  return sum;
}

double MachineSlope::VarianceOf(const MachineState& step) const {
  const Vector& x = step.values;
  double sum = 0;
  for (int k = 0; k < kStates; ++k) {
    for (int l = 0; l < kStates; ++l) sum += x[k] * covariance_[k][l] * x[l];
  }
  return sum;
}

}  // namespace optrail::tracker
