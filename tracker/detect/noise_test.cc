#include "tracker/detect/noise.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/evaluation/synthetic.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;

TEST(DifferenceScale, IsTheStandardDeviationWhateverTheLevelsDo) {
  const std::vector<double> values = SyntheticSeries(
      NoiseKind::kNormal, 4000, {{1000, 1.3}, {2000, 1 / 1.3}, {3000, 1.1}}, 1);
  EXPECT_NEAR(DifferenceScale(values), 1.1, 0.12);
}

TEST(DifferenceScale, IgnoresOutliers) {
  const std::vector<double> values =
      SyntheticSeries(NoiseKind::kOutliers, 4000, {}, 1);
  EXPECT_NEAR(DifferenceScale(values), 1, 0.12);
}

TEST(DifferenceScale, OfAConstantIsZero) {
  EXPECT_EQ(DifferenceScale(std::vector<double>(10, 3.0)), 0);
  EXPECT_EQ(DifferenceScale(std::vector<double>{}), 0);
  EXPECT_EQ(DifferenceScale(std::vector<double>{1}), 0);
}

TEST(DifferenceScale, OfAStepWithoutNoiseIsSmallButNotZero) {
  std::vector<double> values(50, 1.0);
  values.resize(100, 2.0);
  EXPECT_GT(DifferenceScale(values), 0);
  EXPECT_LT(DifferenceScale(values), 0.02);
}

TEST(SegmentResiduals, SubtractEachSegmentsMedian) {
  EXPECT_THAT(
      SegmentResiduals(std::vector<double>{1, 2, 9, 5, 7}, std::vector<int>{3}),
      ElementsAre(-1, 0, 7, -1, 1));
}

TEST(VarianceInflation, IsOneForIndependentNoise) {
  const std::vector<double> values =
      SyntheticSeries(NoiseKind::kNormal, 2000, {}, 3);
  const std::vector<double> residuals = SegmentResiduals(values, {});
  EXPECT_NEAR(VarianceInflation(residuals, 1), 1, 0.01);
  EXPECT_NEAR(NeighbourCorrelation(residuals, 1), 0, 0.08);
}

TEST(VarianceInflation, SeesMemory) {
  // Autoregression of 0.9 alone inflates by 19; the white noise takes part of
  // that away.
  const std::vector<double> values =
      SyntheticSeries(NoiseKind::kWandering, 4000, {}, 3);
  const std::vector<double> residuals = SegmentResiduals(values, {});
  EXPECT_GT(VarianceInflation(residuals, 1.08), 9);
  EXPECT_GT(NeighbourCorrelation(residuals, 1.08), 0.5);
}

TEST(TruncatedQuadraticLoss, IsCapped) {
  const std::vector<int32_t> loss = TruncatedQuadraticLoss(1, 9);
  EXPECT_THAT(loss,
              ElementsAre(9 * 256, 4 * 256, 256, 0, 256, 4 * 256, 9 * 256));
}

TEST(DensityLoss, OfNormalNoiseIsNearlyQuadratic) {
  const std::vector<double> residuals =
      SegmentResiduals(SyntheticSeries(NoiseKind::kNormal, 20000, {}, 4), {});
  const std::vector<int32_t> loss = DensityLoss(residuals, 1, 4, 9);
  const int middle = static_cast<int>(loss.size() / 2);
  // The kernel widens the variance from 1 to 1.09.
  EXPECT_NEAR(loss[middle + 4] / kLossUnit, 1 / 1.09, 0.25);
  EXPECT_NEAR(loss[middle - 8] / kLossUnit, 4 / 1.09, 0.4);
  EXPECT_EQ(loss.front(), 9 * 256);
  EXPECT_EQ(loss.back(), 9 * 256);
}

TEST(DensityLoss, KnowsTheSharpEdgeOfSkewedNoise) {
  const std::vector<double> residuals =
      SegmentResiduals(SyntheticSeries(NoiseKind::kSkewed, 5000, {}, 5), {});
  const double scale = ResidualScale(residuals);
  const std::vector<int32_t> loss = DensityLoss(residuals, scale, 4, 9);
  const int middle = static_cast<int>(loss.size() / 2);
  EXPECT_EQ(loss[middle - 12], 9 * 256) << "3 scales below";
  EXPECT_LT(loss[middle + 12], 7 * 256) << "3 scales above";
}

TEST(DensityLoss, OfNothingIsTheCap) {
  const std::vector<int32_t> loss = DensityLoss({}, 1, 4, 9);
  EXPECT_EQ(*std::min_element(loss.begin(), loss.end()), 9 * 256);
}

}  // namespace
}  // namespace optrail::tracker
