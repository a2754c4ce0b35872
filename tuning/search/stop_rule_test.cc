#include "tuning/search/stop_rule.h"

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

TEST(StopRuleTest, GoesOnWithoutRules) {
  EXPECT_EQ(AnyOf({})(SessionProgress()), proto::STOP_REASON_UNSPECIFIED);
}

TEST(StopRuleTest, ReportsTheFirstRuleThatFires) {
  const StopRule stop = AnyOf({MaxTrials(100), MaxTime(absl::Minutes(5)),
                               Patience(40), TargetReached(2.5)});
  SessionProgress progress;
  progress.trials = 99;
  EXPECT_EQ(stop(progress), proto::STOP_REASON_UNSPECIFIED);
  progress.best_cost = 2.0;
  EXPECT_EQ(stop(progress), proto::TARGET_REACHED);
  progress.trials_since_improvement = 40;
  EXPECT_EQ(stop(progress), proto::PATIENCE_SPENT);
  progress.elapsed = absl::Minutes(6);
  EXPECT_EQ(stop(progress), proto::TIME_SPENT);
  progress.trials = 100;
  EXPECT_EQ(stop(progress), proto::TRIALS_SPENT);
}

TEST(StopRuleTest, PatienceWaitsForAFirstSuccess) {
  SessionProgress progress;
  progress.trials_since_improvement = 500;
  EXPECT_EQ(Patience(40)(progress), proto::STOP_REASON_UNSPECIFIED);
}

TEST(StopRuleTest, OneLowExpectationIsNotEnough) {
  const StopRule stop = ExpectedImprovementBelow(0.01, 10);
  SessionProgress progress;
  EXPECT_EQ(stop(progress), proto::STOP_REASON_UNSPECIFIED);  // no model
  progress.expected_improvement = 0.001;
  progress.quiet_trials = 1;
  EXPECT_EQ(stop(progress), proto::STOP_REASON_UNSPECIFIED);
  progress.quiet_trials = 10;
  EXPECT_EQ(stop(progress), proto::LITTLE_EXPECTED_IMPROVEMENT);
  progress.expected_improvement = 0.02;
  EXPECT_EQ(stop(progress), proto::STOP_REASON_UNSPECIFIED);
}

}  // namespace
}  // namespace optrail::tuning
