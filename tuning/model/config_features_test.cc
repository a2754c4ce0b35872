#include "tuning/model/config_features.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

KnobLevels Ints(const std::string& name, std::vector<int64_t> ints) {
  KnobLevels knob;
  knob.name = name;
  knob.ordinal = true;
  for (const int64_t value : ints) knob.labels.push_back(std::to_string(value));
  knob.ints = std::move(ints);
  return knob;
}

KnobLevels Names(const std::string& name, std::vector<std::string> labels) {
  KnobLevels knob;
  knob.name = name;
  knob.labels = std::move(labels);
  return knob;
}

TEST(ConfigFeaturesTest, PositiveValuesLieOnALogarithmicScale) {
  const std::vector<KnobLevels> knobs = {Ints("a", {1, 4, 16})};
  const ConfigFeatures features(knobs);
  ASSERT_EQ(features.features().size(), 2u);
  EXPECT_THAT(features.features()[0].value,
              ElementsAre(FloatEq(0), FloatEq(0.5), FloatEq(1)));
  EXPECT_TRUE(features.features()[1].indicator);
}

TEST(ConfigFeaturesTest, OtherValuesLieOnTheScaleOfLevels) {
  const std::vector<KnobLevels> knobs = {Ints("a", {0, 1, 100})};
  EXPECT_THAT(ConfigFeatures(knobs).features()[0].value,
              ElementsAre(FloatEq(0), FloatEq(0.5), FloatEq(1)));
}

TEST(ConfigFeaturesTest, ManyLevelsAlsoCountTrailingZeroBits) {
  const std::vector<KnobLevels> knobs = {Ints("a", {32, 48, 50, 64, 96})};
  const ConfigFeatures features(knobs);
  ASSERT_EQ(features.features().size(), 3u);
  // 5, 4, 1, 6, 5 bits.
  EXPECT_THAT(features.features()[1].value,
              ElementsAre(FloatEq(0.8f), FloatEq(0.6f), FloatEq(0), FloatEq(1),
                          FloatEq(0.8f)));
}

TEST(ConfigFeaturesTest, NamesOnlyDiffer) {
  const std::vector<KnobLevels> knobs = {Names("mode", {"a", "b", "c"})};
  const ConfigFeatures features(knobs);
  ASSERT_EQ(features.features().size(), 1u);
  const Feature& feature = features.features()[0];
  EXPECT_EQ(ConfigFeatures::SquaredDistance(feature, 0, 0), 0);
  EXPECT_EQ(ConfigFeatures::SquaredDistance(feature, 0, 1), 1);
  EXPECT_EQ(ConfigFeatures::SquaredDistance(feature, 0, 2), 1);
}

TEST(ConfigFeaturesTest, AKnobWithOneLevelIsNoFeature) {
  const std::vector<KnobLevels> knobs = {Ints("a", {7}), Names("b", {"x"})};
  EXPECT_TRUE(ConfigFeatures(knobs).features().empty());
}

TEST(ConfigFeaturesTest, CodesTellAllConfigsApart) {
  std::vector<KnobLevels> knobs;
  for (int k = 0; k < 5; ++k) knobs.push_back(Ints("k", {1, 2, 3, 4, 5, 6, 7}));
  const ConfigFeatures features(knobs);
  EXPECT_GT(features.groups().size(), 1u);
  int together = 1;
  for (const ConfigFeatures::Group& group : features.groups()) {
    together *= group.codes;
  }
  EXPECT_EQ(together, 7 * 7 * 7 * 7 * 7);
  const std::vector<uint16_t> levels = {1, 2, 3, 4, 5};
  for (const ConfigFeatures::Group& group : features.groups()) {
    int code = 0;
    for (const int k : group.knobs) code = code * 7 + levels[k];
    EXPECT_EQ(features.Code(group, levels), code);
  }
}

}  // namespace
}  // namespace optrail::tuning
