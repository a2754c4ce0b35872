#include "suites/evaluation/shape_results.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail::suites {
namespace {

ShapeResult Result(const std::string& op, const std::string& shape,
                   double default_us, double tuned_us,
                   const std::vector<double>& peers_us) {
  ShapeResult result;
  result.op = op;
  result.shape = shape;
  result.default_us = default_us;
  result.tuned_us = tuned_us;
  result.default_over_tuned = default_us / tuned_us;
  for (const double us : peers_us) {
    result.peers.push_back({"peer" + std::to_string(result.peers.size()), us,
                            us / default_us, us / tuned_us});
  }
  return result;
}

TEST(ShapeResultsTest, TheFastestPeerIsTheOneThatCounts) {
  const ShapeResult result = Result("sum", "a", 10, 8, {12, 6, 20});
  EXPECT_EQ(result.BestPeer(), "peer1");
  EXPECT_DOUBLE_EQ(*result.BestOverDefault(), .6);
  EXPECT_DOUBLE_EQ(*result.BestOverTuned(), .75);
}

TEST(ShapeResultsTest, SummariesHaveGeometricMeanLowestAndShareBelow90) {
  const RatioSummary summary = Summarise({.5, 2, 1, .8});
  EXPECT_EQ(summary.count, 4);
  EXPECT_NEAR(summary.geometric_mean, .9457, 1e-4);
  EXPECT_DOUBLE_EQ(summary.lowest, .5);
  EXPECT_DOUBLE_EQ(summary.share_below_90, .5);
}

TEST(ShapeResultsTest, TheTableHasARowForEachOperatorAndOneForAll) {
  const auto json =
      nlohmann::json::parse(SummaryTable({Result("sum", "a", 10, 8, {5}),
                                          Result("relu", "b", 10, 10, {20}),
                                          Result("sum", "c", 10, 8, {20})})
                                .ToJson());
  ASSERT_EQ(json.size(), 3);
  EXPECT_EQ(json[0]["operator"], "sum");
  EXPECT_EQ(json[0]["shapes"], 2);
  EXPECT_DOUBLE_EQ(json[0]["default_geometric_mean"], 1);
  EXPECT_DOUBLE_EQ(json[0]["default_share_below_90"], .5);
  EXPECT_EQ(json[2]["operator"], "all");
  EXPECT_EQ(json[2]["shapes"], 3);
}

TEST(ShapeResultsTest, WhatWasNotMeasuredIsCountedAndHasNoRatio) {
  ShapeResult failed;
  failed.op = "sum";
  failed.shape = "a";
  failed.default_failed = true;
  failed.troubles = {"cpu:default: WRONG_RESULT"};
  const auto json =
      nlohmann::json::parse(ResultsJson("{\"seed\": 3}", {failed}));
  EXPECT_EQ(json["run"]["seed"], 3);
  EXPECT_EQ(json["operators"]["sum"]["failed"], 1);
  EXPECT_TRUE(json["operators"]["sum"]["best_over_default"].is_null());
  EXPECT_EQ(json["shapes"][0]["troubles"][0], "cpu:default: WRONG_RESULT");
  EXPECT_TRUE(json["shapes"][0]["default_us"].is_null());
}

TEST(ShapeResultsTest, TheWorstComeFirst) {
  const auto json =
      nlohmann::json::parse(WorstTable({Result("sum", "a", 10, 8, {15}),
                                        Result("sum", "b", 10, 8, {5}),
                                        Result("sum", "c", 10, 8, {7})},
                                       2)
                                .ToJson());
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["shape"], "b");
  EXPECT_EQ(json[1]["shape"], "c");
}

}  // namespace
}  // namespace optrail::suites
