#ifndef OPTRAIL_BASE_DISTRIBUTIONS_H_
#define OPTRAIL_BASE_DISTRIBUTIONS_H_

// Distribution functions and their inverses, to about 1e-12 (relative, where
// the value is not tiny) for parameters up to some thousands; the log-gamma
// functions inside lose a digit for every further factor of ten (1e-9 at 1e6).
// Arguments outside the domain give NaN.

#include <cstdint>

namespace optrail {

double NormalCdf(double x);
// Wichura's AS 241 (1988).
double NormalQuantile(double p);

// I_x(a, b), by Lentz's continued fraction (Numerical Recipes, 6.4).
double RegularizedIncompleteBeta(double a, double b, double x);
// The x with I_x(a, b) = p.
double InverseRegularizedIncompleteBeta(double a, double b, double p);

double StudentTCdf(double t, double degrees_of_freedom);
double StudentTQuantile(double p, double degrees_of_freedom);

// P(X <= k) for X ~ Binomial(n, p).
double BinomialCdf(int64_t k, int64_t n, double p);

}  // namespace optrail

#endif  // OPTRAIL_BASE_DISTRIBUTIONS_H_
