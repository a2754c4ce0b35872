#include "tracker/compare/ratio.h"

#include <algorithm>
#include <cmath>

#include "base/stats/distributions.h"

namespace optrail::tracker {

Ratio RatioOf(double log_ratio, double standard_error,
              double degrees_of_freedom, double confidence) {
  Ratio ratio;
  ratio.log_ratio = log_ratio;
  ratio.standard_error = standard_error;
  ratio.degrees_of_freedom = degrees_of_freedom;
  const double t = log_ratio / standard_error;
  ratio.p_greater = StudentTCdf(-t, degrees_of_freedom);
  ratio.p_less = StudentTCdf(t, degrees_of_freedom);
  ratio.p_two_sided =
      std::min(1.0, 2 * std::min(ratio.p_greater, ratio.p_less));
  const double half_width =
      -StudentTQuantile((1 - confidence) / 2, degrees_of_freedom) *
      standard_error;
  ratio.ratio = std::exp(log_ratio);
  ratio.low = std::exp(log_ratio - half_width);
  ratio.high = std::exp(log_ratio + half_width);
  return ratio;
}

double MinimumDetectableEffect(double standard_error, double degrees_of_freedom,
                               double critical, double power,
                               double min_effect) {
  // Found is what exceeds both the critical value, which itself varies with the
  // estimated error, and min_effect. The first is a matter of the noncentral t
  // distribution, in the normal approximation of Johnson and Welch (1940).
  const double margin = NormalQuantile(power);
  const double noncentrality =
      critical * (1 - 1 / (4 * degrees_of_freedom)) +
      margin * std::sqrt(1 + critical * critical / (2 * degrees_of_freedom));
  return std::expm1(std::max(noncentrality * standard_error,
                             std::log1p(min_effect) + margin * standard_error));
}

}  // namespace optrail::tracker
