#include "tuning/command/command_evaluator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommandTrial Try(const std::string& text, CommandLimits limits = {}) {
  Metric metric;
  metric.objective.set_metric("t");
  const CommandEvaluator evaluator(*CommandTemplate::Parse(text, {"k"}),
                                   {metric}, limits);
  return evaluator.Evaluate({{"k", "5"}});
}

TEST(CommandEvaluatorTest, ReadsMetricsOfACommandThatWorks) {
  const CommandTrial trial = Try("echo \"{\\\"t\\\": {k}}\"");
  EXPECT_EQ(trial.outcome, proto::OK) << trial.detail;
  EXPECT_THAT(trial.values, ElementsAre(5));
  EXPECT_GT(trial.elapsed, absl::ZeroDuration());
}

TEST(CommandEvaluatorTest, ACommandThatNeverEndsTimesOut) {
  CommandLimits limits;
  limits.timeout = absl::Milliseconds(50);
  const CommandTrial trial = Try("sleep 1000 | cat; : {k}", limits);
  EXPECT_EQ(trial.outcome, proto::TIMED_OUT);
  EXPECT_LT(trial.elapsed, absl::Seconds(100));
}

TEST(CommandEvaluatorTest, AFailureIsACrashWithItsLastWords) {
  const CommandTrial trial = Try("echo 'out of luck' >&2; exit {k}");
  EXPECT_EQ(trial.outcome, proto::CRASHED);
  EXPECT_THAT(trial.detail, HasSubstr("exited with code 5: out of luck"));
  EXPECT_TRUE(trial.values.empty());
}

TEST(CommandEvaluatorTest, ASignalIsACrash) {
  EXPECT_EQ(Try(": {k}; kill -SEGV $$").outcome, proto::CRASHED);
}

TEST(CommandEvaluatorTest, AMetricPrintedByAFailureDoesNotCount) {
  const CommandTrial trial = Try("echo '{\"t\": 1}'; exit {k}");
  EXPECT_EQ(trial.outcome, proto::CRASHED);
  EXPECT_TRUE(trial.values.empty());
}

TEST(CommandEvaluatorTest, NonsenseIsAWrongResult) {
  for (const char* text :
       {"echo {k}", ": {k}", "echo '{\"t\": -1}' # {k}",
        "echo '{\"t\": \"inf\"}' # {k}", "head -c 100000 /dev/zero # {k}"}) {
    EXPECT_EQ(Try(text).outcome, proto::WRONG_RESULT) << text;
  }
}

TEST(CommandEvaluatorTest, AProgramThatIsNotThereIsACrashThatNamesIt) {
  const CommandTrial trial = Try("no-such-program {k}");
  EXPECT_EQ(trial.outcome, proto::CRASHED);
  EXPECT_THAT(trial.detail, HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace optrail::tuning
