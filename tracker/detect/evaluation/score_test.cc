#include "tracker/detect/evaluation/score.h"

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

// The published implementation's own examples.
TEST(F1, AgreesWithPublishedValues) {
  EXPECT_NEAR(F1({{10, 20}, {11, 20}, {10}, {0, 5}}, {10, 20}), 1.0, 1e-12);
  EXPECT_NEAR(F1({{}, {10}, {50}}, {10}), 0.9090909090909091, 1e-12);
  EXPECT_NEAR(F1({{}, {10}, {50}}, {}), 0.8, 1e-12);
}

TEST(Covering, AgreesWithPublishedValues) {
  EXPECT_NEAR(Covering({{10, 20}, {10}, {0, 5}}, {10, 20}, 45),
              0.7962962962962963, 1e-12);
  EXPECT_NEAR(Covering({{}, {10}, {40}}, {10}, 45), 0.7954144620811286, 1e-12);
  EXPECT_NEAR(Covering({{}, {10}, {40}}, {}, 45), 0.8189300411522634, 1e-12);
}

TEST(TruePositives, UsesEachPredictionOnce) {
  EXPECT_EQ(TruePositives({1, 10, 20, 23}, {1, 3, 5, 8, 20}), 3);
  EXPECT_EQ(TruePositives({10, 12}, {11}), 1);
  EXPECT_EQ(TruePositives({10}, {16}), 0);
}

}  // namespace
}  // namespace optrail::tracker
