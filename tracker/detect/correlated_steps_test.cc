#include "tracker/detect/correlated_steps.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/detect/evaluation/synthetic.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> Every(int distance, int n) {
  std::vector<int> candidates;
  for (int t = distance; t < n; t += distance) candidates.push_back(t);
  return candidates;
}

double Penalty(int n) { return 4 * std::log(n); }

TEST(SelectCorrelatedSteps, KeepsASharpStepInWanderingNoise) {
  const std::vector<double> values =
      SyntheticSeries(NoiseKind::kWandering, 300, {{150, 1.06}}, 1);
  EXPECT_THAT(SelectCorrelatedSteps(values, Every(15, 300), Penalty(300)),
              ElementsAre(150));
}

TEST(SelectCorrelatedSteps, TakesWanderingForMemory) {
  int false_steps = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    const std::vector<double> values =
        SyntheticSeries(NoiseKind::kWandering, 300, {}, seed);
    false_steps +=
        SelectCorrelatedSteps(values, Every(10, 300), Penalty(300)).size();
  }
  EXPECT_LE(false_steps, 1);
}

TEST(SelectCorrelatedSteps, WorksInIndependentNoiseToo) {
  const std::vector<double> values = SyntheticSeries(
      NoiseKind::kNormal, 300, {{90, 1.03}, {150, 0.97}, {240, 1.04}}, 2);
  EXPECT_THAT(SelectCorrelatedSteps(values, Every(15, 300), Penalty(300)),
              ElementsAre(90, 150, 240));
}

TEST(SelectCorrelatedSteps, TakesMoreCandidatesThanOneGroupHolds) {
  std::vector<Step> steps;
  for (int t = 200; t < 2000; t += 200) {
    steps.push_back({t, t % 400 == 0 ? 1.1 : 1 / 1.1});
  }
  const std::vector<double> values =
      SyntheticSeries(NoiseKind::kWandering, 2000, steps, 3);
  EXPECT_THAT(SelectCorrelatedSteps(values, Every(20, 2000), Penalty(2000)),
              ElementsAre(200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800));
}

TEST(SelectCorrelatedSteps, OfNoCandidatesOrAConstantIsNothing) {
  EXPECT_THAT(SelectCorrelatedSteps(std::vector<double>(50, 1.0), {}, 10),
              IsEmpty());
  EXPECT_THAT(
      SelectCorrelatedSteps(std::vector<double>(50, 1.0), Every(10, 50), 10),
      IsEmpty());
}

}  // namespace
}  // namespace optrail::tracker
