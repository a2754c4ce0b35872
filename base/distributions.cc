#include "base/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace optrail {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double LogBeta(double a, double b) {
  // lgamma_r: unlike lgamma it sets no global and is safe in threads.
  int sign;
  return lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
}

// The continued fraction of I_x(a, b), modified Lentz's method; converges fast
// for x < (a + 1) / (a + b + 2).
double BetaContinuedFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEpsilon = 1e-16;
  auto away_from_zero = [](double v) {
    return std::abs(v) < kTiny ? kTiny : v;
  };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  // O(sqrt(max(a, b))) terms are needed.
  const int max_terms = 200 + static_cast<int>(10 * std::sqrt(std::max(a, b)));
  for (int m = 1; m <= max_terms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd =
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double factor = d * c;
    result *= factor;
    if (std::abs(factor - 1) < kEpsilon) break;
  }
  return result;
}

}  // namespace

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double NormalQuantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           (((((((2509.0809287301226727 * r + 33430.575583588128105) * r +
                 67265.770927008700853) *
                    r +
                45921.953931549871457) *
                   r +
               13731.693765509461125) *
                  r +
              1971.5909503065514427) *
                 r +
             133.14166789178437745) *
                r +
            3.387132872796366608) /
           (((((((5226.495278852545925 * r + 28729.085735721942674) * r +
                 39307.89580009271061) *
                    r +
                21213.794301586595867) *
                   r +
               5394.1960214247511077) *
                  r +
              687.1870074920579083) *
                 r +
             42.313330701600911252) *
                r +
            1.0);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double value;
  if (r <= 5) {
    r -= 1.6;
    value =
        (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r +
              0.24178072517745061177) *
                 r +
             1.27045825245236838258) *
                r +
            3.64784832476320460504) *
               r +
           5.7694972214606914055) *
              r +
          4.6303378461565452959) *
             r +
         1.42343711074968357734) /
        (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r +
              0.0151986665636164571966) *
                 r +
             0.14810397642748007459) *
                r +
            0.68976733498510000455) *
               r +
           1.6763848301838038494) *
              r +
          2.05319162663775882187) *
             r +
         1.0);
  } else {
    r -= 5;
    value =
        (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
              0.0012426609473880784386) *
                 r +
             0.026532189526576123093) *
                r +
            0.29656057182850489123) *
               r +
           1.7848265399172913358) *
              r +
          5.4637849111641143699) *
             r +
         6.6579046435011037772) /
        (((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r +
              1.8463183175100546818e-5) *
                 r +
             7.868691311456132591e-4) *
                r +
            0.0148753612908506148525) *
               r +
           0.13692988092273580531) *
              r +
          0.59983220655588793769) *
             r +
         1.0);
  }
  return q < 0 ? -value : value;
}

double RegularizedIncompleteBeta(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return kNan;
  if (x == 0 || x == 1) return x;
  const double front =
      std::exp(a * std::log(x) + b * std::log1p(-x) - LogBeta(a, b));
  if (x < (a + 1) / (a + b + 2)) {
    return front * BetaContinuedFraction(a, b, x) / a;
  }
  return 1 - front * BetaContinuedFraction(b, a, 1 - x) / b;
}

double InverseRegularizedIncompleteBeta(double a, double b, double p) {
  if (!(a > 0 && b > 0 && p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p;
  // Bisection: slow (some 60 steps) and safe. Relative precision near 0 too.
  double low = 0, high = 1;
  for (int i = 0; i < 1100; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (RegularizedIncompleteBeta(a, b, middle) < p ? low : high) = middle;
  }
  return high;
}

double StudentTCdf(double t, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0) || std::isnan(t)) return kNan;
  if (std::isinf(degrees_of_freedom)) return NormalCdf(t);
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  const double tail =
      0.5 * RegularizedIncompleteBeta(
                degrees_of_freedom / 2, 0.5,
                degrees_of_freedom / (degrees_of_freedom + t * t));
  return t > 0 ? 1 - tail : tail;
}

double StudentTQuantile(double p, double degrees_of_freedom) {
  if (!(degrees_of_freedom > 0 && p >= 0 && p <= 1)) return kNan;
  if (std::isinf(degrees_of_freedom)) return NormalQuantile(p);
  if (p == 0.5) return 0;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  const double tail = std::min(p, 1 - p);
  // In the middle 1 - x loses digits, so the mirrored integral is inverted.
  double t;
  if (tail > 0.1) {
    const double y = InverseRegularizedIncompleteBeta(
        0.5, degrees_of_freedom / 2, 1 - 2 * tail);
    t = std::sqrt(degrees_of_freedom * y / (1 - y));
  } else {
    const double x =
        InverseRegularizedIncompleteBeta(degrees_of_freedom / 2, 0.5, 2 * tail);
    t = std::sqrt(degrees_of_freedom * (1 - x) / x);
  }
  return p < 0.5 ? -t : t;
}

double BinomialCdf(int64_t k, int64_t n, double p) {
  if (n < 0 || !(p >= 0 && p <= 1)) return kNan;
  if (k < 0) return 0;
  if (k >= n) return 1;
  return RegularizedIncompleteBeta(static_cast<double>(n - k),
                                   static_cast<double>(k + 1), 1 - p);
}

}  // namespace optrail
