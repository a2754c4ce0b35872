#ifndef OPTRAIL_TRACKER_DETECT_EVALUATION_SYNTHETIC_H_
#define OPTRAIL_TRACKER_DETECT_EVALUATION_SYNTHETIC_H_

// Series with known steps in named kinds of noise, for tests and benchmarks. A
// seed fixes every value.

#include <cstdint>
#include <string>
#include <vector>

namespace optrail::tracker {

enum class NoiseKind {
  kNormal,          // standard deviation 1%
  kSkewed,          // lognormal, long tail upwards, 2.2%
  kBimodal,         // two modes 3% apart
  kOutliers,        // normal, 3% of points 10 to 60% too high
  kBursts,          // normal, now and then 2 or 3 such in a row
  kHeavyTail,       // Student's t with 3 degrees of freedom
  kWandering,       // first-order autoregression 0.9, 1%, plus white noise
  kVarianceChange,  // 0.5% and 2.5% by turns
  kRamp,            // normal on a slope of 20% over the middle half
};

inline constexpr NoiseKind kAllNoiseKinds[] = {
    NoiseKind::kNormal,    NoiseKind::kSkewed,         NoiseKind::kBimodal,
    NoiseKind::kOutliers,  NoiseKind::kBursts,         NoiseKind::kHeavyTail,
    NoiseKind::kWandering, NoiseKind::kVarianceChange, NoiseKind::kRamp,
};

std::string Name(NoiseKind kind);

struct Step {
  int index;     // first point of the new level
  double ratio;  // new level over old
};

// Multiplicative noise on a level that starts at 100.
std::vector<double> SyntheticSeries(NoiseKind kind, int num_points,
                                    const std::vector<Step>& steps,
                                    uint64_t seed);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_EVALUATION_SYNTHETIC_H_
