#include "tuning/search/acquisition.h"

#include <cmath>

namespace optrail::tuning {
namespace {

constexpr double kInverseRootTwoPi = 0.3989422804014327;
constexpr double kLogRootTwoPi = 0.9189385332046727;
constexpr double kInverseRootTwo = 0.7071067811865476;
// Below this z the difference in the formula cancels.
constexpr double kTail = -8;

}  // namespace

double ExpectedImprovementOf(double gap, double sd) {
  const double z = gap / sd;
  return sd * (kInverseRootTwoPi * std::exp(-0.5 * z * z) +
               z * 0.5 * std::erfc(-z * kInverseRootTwo));
}

double LogExpectedImprovementOf(double gap, double sd) {
  const double z = gap / sd;
  if (z > kTail) return std::log(ExpectedImprovementOf(gap, sd));
  // density(z) / z^2 * (1 - 3 / z^2 + 15 / z^4 - ...)
  const double w = 1 / (z * z);
  return std::log(sd) - kLogRootTwoPi - 0.5 * z * z + std::log(w) +
         std::log1p(w * (-3 + 15 * w));
}

}  // namespace optrail::tuning
