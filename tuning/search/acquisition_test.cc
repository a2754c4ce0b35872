#include "tuning/search/acquisition.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

// The definition: the integral of max(0, gap + sd z) over the density of z.
double ByIntegration(double gap, double sd) {
  double sum = 0;
  const double step = 1e-3;
  for (double z = -12; z < 12; z += step) {
    sum += std::max(0.0, gap + sd * z) * std::exp(-0.5 * z * z) * step;
  }
  return sum / std::sqrt(2 * std::acos(-1.0));
}

TEST(AcquisitionTest, ExpectedImprovementIsTheIntegral) {
  for (const double gap : {-2.0, -0.3, 0.0, 0.5, 3.0}) {
    for (const double sd : {0.2, 1.0, 2.5}) {
      EXPECT_NEAR(ExpectedImprovementOf(gap, sd), ByIntegration(gap, sd), 1e-5)
          << gap << " " << sd;
    }
  }
}

TEST(AcquisitionTest, LogarithmAgreesWithTheImprovement) {
  for (const double gap : {-7.0, -3.0, 0.0, 2.0}) {
    EXPECT_NEAR(LogExpectedImprovementOf(gap, 1),
                std::log(ExpectedImprovementOf(gap, 1)), 1e-9);
  }
}

TEST(AcquisitionTest, LogarithmIsContinuousWhereTheTailBegins) {
  for (const double sd : {0.5, 1.0, 4.0}) {
    EXPECT_NEAR(LogExpectedImprovementOf(-7.9999 * sd, sd),
                LogExpectedImprovementOf(-8.0001 * sd, sd), 5e-3);
  }
}

TEST(AcquisitionTest, LogarithmOrdersTheHopeless) {
  double last = LogExpectedImprovementOf(-5, 1);
  for (double gap = -6; gap > -1000; gap *= 1.1) {
    const double value = LogExpectedImprovementOf(gap, 1);
    EXPECT_TRUE(std::isfinite(value)) << gap;
    EXPECT_LT(value, last) << gap;
    last = value;
  }
}

}  // namespace
}  // namespace optrail::tuning
