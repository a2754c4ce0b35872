#include "tracker/compare/machine_slope.h"

#include <cmath>
#include <vector>

#include "base/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

// Slopes before anything is known, and the standard deviations of that.
constexpr double kCore = .5, kCoreSpread = .5;
constexpr double kMemory = .25, kMemorySpread = .35;
constexpr int kIterations = 10;
constexpr double kPriorDegrees = 4;

}  // namespace

MachineSlope MachineSlope::Fit(absl::Span<const double> values,
                               absl::Span<const MachineState> states,
                               double expected) {
  MachineSlope fit;
  fit.exists_ = true;
  std::vector<double> core, memory;
  for (const MachineState& state : states) {
    core.push_back(state.core);
    memory.push_back(state.memory);
  }
  fit.center_ = {Median(core), Median(memory)};
  fit.slope_ = {kCore, kMemory};
  double scale = expected;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<double> rests;
    for (size_t i = 0; i < values.size(); ++i) {
      rests.push_back(values[i] - fit.Explains(states[i]));
    }
    const double level = HuberLocation(rests, scale);
    std::vector<double> deviations;
    for (const double rest : rests) deviations.push_back(rest - level);
    const double n = static_cast<double>(values.size());
    scale = std::sqrt((kPriorDegrees * expected * expected +
                       n * WinsorisedVariance(deviations)) /
                      (kPriorDegrees + n));
    // Weighted means out, then the normal equations with the prior.
    double total = 0, x_mean = 0, y_mean = 0, z_mean = 0;
    std::vector<double> weights;
    for (size_t i = 0; i < values.size(); ++i) {
      weights.push_back(HuberWeight(deviations[i], scale));
      total += weights[i];
      x_mean += weights[i] * core[i];
      y_mean += weights[i] * memory[i];
      z_mean += weights[i] * values[i];
    }
    x_mean /= total;
    y_mean /= total;
    z_mean /= total;
    double a = 1 / (kCoreSpread * kCoreSpread), b = 0,
           c = 1 / (kMemorySpread * kMemorySpread);
    double u = a * kCore, v = c * kMemory;
    for (size_t i = 0; i < values.size(); ++i) {
      const double w = weights[i] / (scale * scale);
      const double x = core[i] - x_mean, y = memory[i] - y_mean,
                   z = values[i] - z_mean;
      a += w * x * x;
      b += w * x * y;
      c += w * y * y;
      u += w * x * z;
      v += w * y * z;
    }
    const double determinant = a * c - b * b;
    fit.covariance_ = {c / determinant, -b / determinant, a / determinant};
    fit.slope_ = {(c * u - b * v) / determinant, (a * v - b * u) / determinant};
  }
  return fit;
}

double MachineSlope::Explains(const MachineState& state) const {
  return exists_ ? Effect({state.core - center_.core,
                           state.memory - center_.memory})
                 : 0;
}

double MachineSlope::Effect(const MachineState& step) const {
  return slope_[0] * step.core + slope_[1] * step.memory;
}

double MachineSlope::VarianceOf(const MachineState& step) const {
  return covariance_[0] * step.core * step.core +
         2 * covariance_[1] * step.core * step.memory +
         covariance_[2] * step.memory * step.memory;
}

}  // namespace optrail::tracker
