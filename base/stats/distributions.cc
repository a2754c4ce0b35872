#include "base/stats/distributions.h"

#include <cmath>
#include <limits>

#include "boost/math/distributions/normal.hpp"
#include "boost/math/distributions/students_t.hpp"
#include "boost/math/special_functions/beta.hpp"

namespace optrail {
namespace {

namespace policies = boost::math::policies;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Nothing throws: what is not defined is NaN, what is too large infinite. And
// nothing is computed with 80 bits, which takes several times as long: what is
// judged by these has fewer than ten right digits.
using Quiet =
    policies::policy<policies::domain_error<policies::ignore_error>,
                     policies::pole_error<policies::ignore_error>,
                     policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>,
                     policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Quiet>;
using StudentT = boost::math::students_t_distribution<double, Quiet>;

bool IsProbability(double p) { return p >= 0 && p <= 1; }

}  // namespace

double NormalCdf(double x) { return boost::math::cdf(Normal(), x); }

double NormalQuantile(double p) {
  if (!IsProbability(p)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  return boost::math::quantile(Normal(), p);
}

double RegularizedIncompleteBeta(double a, double b, double x) {
  if (!(a > 0 && b > 0 && IsProbability(x))) return kNan;
  return boost::math::ibeta(a, b, x, Quiet());
}

double InverseRegularizedIncompleteBeta(double a, double b, double p) {
  if (!(a > 0 && b > 0 && IsProbability(p))) return kNan;
  return boost::math::ibeta_inv(a, b, p, Quiet());
}

double StudentTCdf(double t, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0) || std::isnan(t)) return kNan;
  return boost::math::cdf(StudentT(degrees_of_freedom), t);
}

double StudentTQuantile(double p, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0 && IsProbability(p))) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  return boost::math::quantile(StudentT(degrees_of_freedom), p);
}

double BinomialCdf(int64_t k, int64_t n, double p) {
  if (n < 0 || !IsProbability(p)) return kNan;
  if (k < 0) return 0;
  if (k >= n) return 1;
  return RegularizedIncompleteBeta(static_cast<double>(n - k),
                                   static_cast<double>(k + 1), 1 - p);
}

}  // namespace optrail
