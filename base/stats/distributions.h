#ifndef OPTRAIL_BASE_STATS_DISTRIBUTIONS_H_
#define OPTRAIL_BASE_STATS_DISTRIBUTIONS_H_

// Distribution functions and their inverses: Boost.Math's, which keep their
// digits (1e-12, relative) in the tails and for large parameters. Arguments
// outside the domain give NaN; nothing throws.

#include <cstdint>

namespace optrail {

double NormalCdf(double x);
double NormalQuantile(double p);

// I_x(a, b).
double RegularizedIncompleteBeta(double a, double b, double x);
// The x with I_x(a, b) = p.
double InverseRegularizedIncompleteBeta(double a, double b, double p);

double StudentTCdf(double t, double degrees_of_freedom);
double StudentTQuantile(double p, double degrees_of_freedom);

// P(X <= k) for X ~ Binomial(n, p).
double BinomialCdf(int64_t k, int64_t n, double p);

}  // namespace optrail

#endif  // OPTRAIL_BASE_STATS_DISTRIBUTIONS_H_
