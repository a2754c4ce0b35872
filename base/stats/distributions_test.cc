#include "base/stats/distributions.h"

#include <cmath>

#include "gtest/gtest.h"

namespace optrail {
namespace {

void ExpectClose(double actual, double expected, double relative = 1e-10) {
  EXPECT_NEAR(actual, expected, std::abs(expected) * relative);
}

TEST(DistributionsTest, NormalMatchesTables) {
  EXPECT_EQ(NormalCdf(0), 0.5);
  ExpectClose(NormalCdf(1.96), 0.9750021048517795);   // R: pnorm(1.96)
  ExpectClose(NormalCdf(-6), 9.865876450376981e-10);  // R: pnorm(-6)
  ExpectClose(NormalQuantile(0.975), 1.959963984540054);
  ExpectClose(NormalQuantile(0.75), 0.6744897501960817);
  ExpectClose(NormalQuantile(0.001), -3.090232306167813);
  ExpectClose(NormalCdf(NormalQuantile(1e-300)), 1e-300);
}

TEST(DistributionsTest, NormalQuantileInvertsTheCdf) {
  for (double p = 1e-12; p < 1; p = p < 0.01 ? p * 3 : p + 0.013) {
    ExpectClose(NormalCdf(NormalQuantile(p)), p, 1e-11);
  }
  EXPECT_TRUE(std::isinf(NormalQuantile(1)));
  EXPECT_TRUE(std::isnan(NormalQuantile(1.1)));
}

TEST(DistributionsTest, BetaHasItsClosedForms) {
  for (double x = 0; x <= 1; x += 0.05) {
    for (const double a : {0.5, 1.0, 3.0, 40.0, 1000.0}) {
      // I_x(a, 1) = x^a, I_x(1, a) = 1 - (1 - x)^a, and the symmetry.
      EXPECT_NEAR(RegularizedIncompleteBeta(a, 1, x), std::pow(x, a), 1e-12);
      EXPECT_NEAR(RegularizedIncompleteBeta(1, a, x), 1 - std::pow(1 - x, a),
                  1e-12);
      EXPECT_NEAR(RegularizedIncompleteBeta(a, 2.5, x) +
                      RegularizedIncompleteBeta(2.5, a, 1 - x),
                  1, 1e-12);
    }
    // The arcsine law.
    EXPECT_NEAR(RegularizedIncompleteBeta(0.5, 0.5, x),
                2 / M_PI * std::asin(std::sqrt(x)), 1e-12);
  }
  EXPECT_TRUE(std::isnan(RegularizedIncompleteBeta(0, 1, 0.5)));
}

TEST(DistributionsTest, InverseBetaInverts) {
  for (const double a : {0.5, 2.0, 30.0}) {
    for (const double b : {0.5, 1.0, 70.0}) {
      for (const double p : {1e-9, 0.025, 0.5, 0.99}) {
        ExpectClose(RegularizedIncompleteBeta(
                        a, b, InverseRegularizedIncompleteBeta(a, b, p)),
                    p, 1e-6);
      }
    }
  }
}

TEST(DistributionsTest, StudentTHasItsClosedForms) {
  for (double t = -30; t <= 30; t += 0.7) {
    // One degree of freedom is Cauchy's; two have an algebraic form.
    EXPECT_NEAR(StudentTCdf(t, 1), 0.5 + std::atan(t) / M_PI, 1e-12);
    EXPECT_NEAR(StudentTCdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-12);
    EXPECT_NEAR(StudentTCdf(t, 1e6), NormalCdf(t), 1e-6);
  }
}

TEST(DistributionsTest, StudentTQuantileMatchesTables) {
  // The usual two-sided 95% and 99% tables.
  EXPECT_NEAR(StudentTQuantile(0.975, 1), 12.7062047, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.975, 5), 2.5705818, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.975, 10), 2.2281389, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.995, 30), 2.7499957, 1e-6);
  for (const double p : {1e-8, 0.01, 0.3, 0.49, 0.6, 0.999}) {
    ExpectClose(StudentTCdf(StudentTQuantile(p, 7.5), 7.5), p, 1e-9);
  }
  EXPECT_EQ(StudentTQuantile(0.5, 3), 0);
}

TEST(DistributionsTest, LargeParametersKeepTheirDigits) {
  // Exact rational arithmetic: P(X <= k) for X ~ Binomial(n, 1/2) at its middle
  // is 1/2 + C(n, n/2) / 2^(n+1), with Stirling's series for C.
  for (const double n : {1e4, 1e6, 1e8}) {
    const double middle =
        std::sqrt(2 / (M_PI * n)) *
        (1 - 1 / (4 * n) + 1 / (32 * n * n) + 5 / (128 * n * n * n));
    const auto half = static_cast<int64_t>(n / 2);
    ExpectClose(BinomialCdf(half, static_cast<int64_t>(n), 0.5),
                0.5 + middle / 2, 1e-11);
  }
  EXPECT_TRUE(std::isnan(StudentTQuantile(0.9, -1)));
  EXPECT_TRUE(std::isinf(StudentTQuantile(1, 3)));
  ExpectClose(StudentTQuantile(0.975, INFINITY), NormalQuantile(0.975));
  EXPECT_EQ(StudentTCdf(-INFINITY, 3), 0);
}

TEST(DistributionsTest, BinomialMatchesTheSum) {
  for (const double p : {0.01, 0.5, 0.9}) {
    double term = std::pow(1 - p, 12), sum = 0;
    for (int k = 0; k <= 12; ++k) {
      sum += term;
      EXPECT_NEAR(BinomialCdf(k, 12, p), sum, 1e-12);
      term *= (12.0 - k) / (k + 1) * p / (1 - p);
    }
  }
  EXPECT_EQ(BinomialCdf(-1, 5, 0.5), 0);
}

}  // namespace
}  // namespace optrail
