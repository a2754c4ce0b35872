#include "tuning/session/parse_objective.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using testing::HasSubstr;

TEST(ParseObjectiveTest, ReadsNameDirectionAndLimit) {
  const auto plain = ParseObjective("results.throughput:max");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->metric(), "results.throughput");
  EXPECT_EQ(plain->direction(), proto::HIGHER_IS_BETTER);
  EXPECT_FALSE(plain->has_limit());

  const auto limited = ParseObjective("memory_mb:min<=3.2e1");
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(limited->limit(), 32);
  EXPECT_FALSE(limited->has_limit_over_best());
}

TEST(ParseObjectiveTest, ReadsALimitOfTheBest) {
  const auto time = ParseObjective("time<=1.05x", proto::LOWER_IS_BETTER);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(time->limit_over_best(), 1.05);
  EXPECT_FALSE(time->has_limit());
  const auto rate = ParseObjective("rate:max>=0.9x");
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(rate->limit_over_best(), .9);
}

TEST(ParseObjectiveTest, SaysWhatWasExpected) {
  const struct {
    const char* text;
    const char* says;
  } kCases[] = {
      {"", "expected NAME:min or NAME:max"},
      {"time", "expected NAME:min or NAME:max"},
      {"time:least", "expected NAME:min or NAME:max"},
      {"time:min>=3", "expected a limit <="},
      {"rate:max<=3", "expected a limit >="},
      {"time:min<=", "expected NAME"},
      {"time:min<=fast", "positive number"},
      {"time:min<=-1", "positive number"},
      {"time:min<=nan", "positive number"},
      {"time:min<=0.9x", "at least 1x"},
      {"rate:max>=1.1x", "at most 1x"},
      {"time:min<=1.05xx", "positive number"},
      {"time:min<=x", "expected a limit <="},
      {":min", "expected NAME:min or NAME:max"},
      {"a b:min", "expected NAME:min or NAME:max"},
  };
  for (const auto& one : kCases) {
    const auto objective = ParseObjective(one.text);
    ASSERT_FALSE(objective.ok()) << one.text;
    EXPECT_THAT(objective.status().message(), HasSubstr(one.says)) << one.text;
  }
  EXPECT_THAT(
      ParseObjective("time:max", proto::LOWER_IS_BETTER).status().message(),
      HasSubstr("time is minimised"));
}

TEST(ParseObjectiveTest, WeightsAreOneEach) {
  std::vector<proto::Objective> objectives = {*ParseObjective("time:min"),
                                              *ParseObjective("joules:min")};
  EXPECT_TRUE(SetWeights({}, objectives).ok());
  EXPECT_FALSE(objectives[0].has_weight());
  EXPECT_THAT(SetWeights({1}, objectives).message(),
              HasSubstr("1 weights for 2 metrics"));
  ASSERT_TRUE(SetWeights({1, .5}, objectives).ok());
  EXPECT_EQ(objectives[1].weight(), .5);
  objectives.push_back(objectives[0]);
  EXPECT_THAT(SetWeights({}, objectives).message(), HasSubstr("named twice"));
}

}  // namespace
}  // namespace optrail::tuning
