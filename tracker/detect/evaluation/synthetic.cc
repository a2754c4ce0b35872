#include "tracker/detect/evaluation/synthetic.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace optrail::tracker {
namespace {

class Noise {
 public:
  Noise(NoiseKind kind, int num_points, uint64_t seed)
      : kind_(kind), num_points_(num_points), rng_(seed) {
    wander_ = 0.01 * rng_.Gaussian();
  }

  double At(int t) {
    const double normal = 0.01 * rng_.Gaussian();
    switch (kind_) {
      case NoiseKind::kNormal:
        return normal;
      case NoiseKind::kSkewed:
        return 0.01 * (std::exp(rng_.Gaussian()) - std::exp(0.5));
      case NoiseKind::kBimodal:
        return 0.7 * normal + (rng_.UniformReal() < 0.35 ? 0.0195 : -0.0105);
      case NoiseKind::kOutliers:
        return normal + (rng_.UniformReal() < 0.03 ? Spike() : 0);
      case NoiseKind::kBursts:
        if (burst_left_ == 0 && rng_.UniformReal() < 0.012) {
          burst_left_ = 2 + static_cast<int>(rng_.UniformInt(2));
        }
        return normal + (burst_left_ > 0 ? --burst_left_, Spike() : 0);
      case NoiseKind::kHeavyTail: {
        double power = 0;
        for (int i = 0; i < 3; ++i) {
          const double z = rng_.Gaussian();
          power += z * z / 3;
        }
        return 0.7 * normal / std::sqrt(power);
      }
      case NoiseKind::kWandering:
        wander_ = 0.9 * wander_ + std::sqrt(1 - 0.81) * normal;
        return wander_ + 0.004 * rng_.Gaussian();
      case NoiseKind::kVarianceChange:
        return normal * (4 * t / num_points_ % 2 == 0 ? 0.5 : 2.5);
      case NoiseKind::kRamp:
        return normal + 0.2 * std::clamp(2.0 * t / num_points_ - 0.5, 0.0, 1.0);
    }
    return 0;
  }

 private:
  double Spike() { return 0.1 + 0.5 * rng_.UniformReal(); }

  NoiseKind kind_;
  int num_points_;
  Rng rng_;
  double wander_;
  int burst_left_ = 0;
};

}  // namespace

std::string Name(NoiseKind kind) {
  switch (kind) {
    case NoiseKind::kNormal:
      return "normal";
    case NoiseKind::kSkewed:
      return "skewed";
    case NoiseKind::kBimodal:
      return "bimodal";
    case NoiseKind::kOutliers:
      return "outliers";
    case NoiseKind::kBursts:
      return "bursts";
    case NoiseKind::kHeavyTail:
      return "heavy_tail";
    case NoiseKind::kWandering:
      return "wandering";
    case NoiseKind::kVarianceChange:
      return "variance_change";
    case NoiseKind::kRamp:
      return "ramp";
  }
  return "";
}

std::vector<double> SyntheticSeries(NoiseKind kind, int num_points,
                                    const std::vector<Step>& steps,
                                    uint64_t seed) {
  Noise noise(kind, num_points, seed);
  std::vector<double> values;
  values.reserve(num_points);
  double level = 100;
  for (int t = 0; t < num_points; ++t) {
    for (const Step& step : steps) {
      if (step.index == t) level *= step.ratio;
    }
    values.push_back(level * (1 + noise.At(t)));
  }
  return values;
}

}  // namespace optrail::tracker
