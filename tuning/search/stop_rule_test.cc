#include "tuning/search/stop_rule.h"

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

TEST(StopRuleTest, GoesOnWithoutRules) {
  EXPECT_FALSE(AnyOf({})(SessionProgress()).has_value());
}

TEST(StopRuleTest, ReportsTheFirstRuleThatFires) {
  const StopRule stop = AnyOf({MaxTrials(100), MaxTime(absl::Minutes(5)),
                               Patience(40), TargetReached(2.5)});
  SessionProgress progress;
  progress.trials = 99;
  EXPECT_FALSE(stop(progress).has_value());
  progress.best_cost = 2.0;
  EXPECT_EQ(stop(progress)->kind, StopKind::kTarget);
  progress.trials_since_improvement = 40;
  EXPECT_EQ(stop(progress)->text, "no improvement in 40 trials");
  progress.elapsed = absl::Minutes(6);
  EXPECT_EQ(stop(progress)->text, "time limit of 5m");
  progress.trials = 100;
  EXPECT_EQ(stop(progress)->kind, StopKind::kTrials);
}

TEST(StopRuleTest, PatienceWaitsForAFirstSuccess) {
  SessionProgress progress;
  progress.trials_since_improvement = 500;
  EXPECT_FALSE(Patience(40)(progress).has_value());
}

TEST(StopRuleTest, OneLowExpectationIsNotEnough) {
  const StopRule stop = ExpectedImprovementBelow(0.01, 10);
  SessionProgress progress;
  EXPECT_FALSE(stop(progress).has_value());  // no model
  progress.expected_improvement = 0.001;
  progress.quiet_trials = 1;
  EXPECT_FALSE(stop(progress).has_value());
  progress.quiet_trials = 10;
  EXPECT_EQ(stop(progress)->text, "expected improvement below 1%");
  progress.expected_improvement = 0.02;
  EXPECT_FALSE(stop(progress).has_value());
}

}  // namespace
}  // namespace optrail::tuning
