#include "tracker/compare/factor_posterior.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

// So many benchmarks bound by the core with a noise of half a percent.
std::vector<FactorBenchmark> Suite(const std::vector<double>& deviations) {
  std::vector<FactorBenchmark> suite;
  for (const double deviation : deviations) {
    suite.push_back({deviation, 1, .02 * .02, .005 * .005});
  }
  return suite;
}

FactorPrior Spread(double spread) {
  FactorPrior prior;
  prior.spread = spread;
  prior.degrees = 15;
  prior.bad_share = .004;
  return prior;
}

TEST(FactorPosterior, WhatAllShareWithinTheHistoryIsTheMachine) {
  const FactorPosterior posterior = PosteriorOf(
      Suite({.03, .031, .029, .034, .026, .03, .032, .028}), Spread(.03));
  EXPECT_NEAR(posterior.factor, .03, .003);
  EXPECT_GT(posterior.low, .02);
  EXPECT_LT(posterior.high, .04);
}

TEST(FactorPosterior, AnImprovementOfMostIsNotTheMachinesWhereItNeverDidThat) {
  const FactorPosterior posterior = PosteriorOf(
      Suite({-.1, -.101, -.1, -.097, -.103, -.1, -.102, -.099, -.1, 0}),
      Spread(.01));
  EXPECT_NEAR(posterior.factor, 0, .03);
  EXPECT_GT(posterior.low, -.05);
}

TEST(FactorPosterior, WhichHalfToBelieveIsOpenWhereTheMachineVariesAsMuch) {
  const FactorPosterior posterior = PosteriorOf(
      Suite({.08, .081, .079, .08, .082, .078, 0, .001, -.001, .002}),
      Spread(.03));
  EXPECT_LT(posterior.low, .01);
  EXPECT_GT(posterior.high, .07);
}

TEST(FactorPosterior, ABenchmarksOwnChangeIsNotInItsFactor) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const FactorPosterior posterior =
      PosteriorOf(Suite({.3, .01, .011, nan, .009, .01}), Spread(.02));
  EXPECT_NEAR(posterior.without[0], .01, .003);
  EXPECT_NEAR(posterior.without[3], posterior.factor, 1e-9);
  EXPECT_NEAR(posterior.factor, .01, .003);
}

TEST(FactorPosterior, NothingMeasuredSaysNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const FactorPosterior posterior = PosteriorOf(Suite({nan, nan}), Spread(.02));
  EXPECT_NEAR(posterior.factor, 0, 1e-3);
}

}  // namespace
}  // namespace optrail::tracker
