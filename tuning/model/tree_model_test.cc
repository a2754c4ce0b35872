#include "tuning/model/tree_model.h"

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

TEST(TreeModelTest, LearnsAStepAndAnInteraction) {
  Rng rng(1);
  const auto truth = [](float x, float y) {
    return (x > 0.5f ? 3.0f : 0.0f) + (x > 0.5f && y > 0.5f ? 2.0f : 0.0f);
  };
  std::vector<std::vector<float>> rows;
  std::vector<float> targets;
  for (int i = 0; i < 300; ++i) {
    const float x = static_cast<float>(rng.UniformReal());
    const float y = static_cast<float>(rng.UniformReal());
    rows.push_back({x, y});
    targets.push_back(truth(x, y));
  }
  TreeModel model;
  model.Train(rows, targets);
  const std::vector<std::vector<float>> probes = {
      {0.2f, 0.8f}, {0.8f, 0.2f}, {0.8f, 0.8f}};
  const std::vector<float> predicted = model.Predict(probes);
  for (size_t i = 0; i < probes.size(); ++i) {
    EXPECT_NEAR(predicted[i], truth(probes[i][0], probes[i][1]), 0.2);
  }
  TreeModel again;
  again.Train(rows, targets);
  EXPECT_EQ(again.Predict(probes), predicted);
}

TEST(TreeModelTest, PredictsZeroBeforeItWasTrained) {
  EXPECT_EQ(TreeModel().Predict({{1.0f}, {2.0f}}),
            (std::vector<float>{0.0f, 0.0f}));
}

}  // namespace
}  // namespace optrail::tuning
