#include "tuning/space/space_change.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSpace[] = R"(
knob { name: "step" ints: [3, 5, 7] }
knob { name: "ratio" ints: [4, 8, 16] }
knob { name: "power" pow2 { min: 2 max: 16 } }
knob { name: "part" divisors { dim: "n" min: 2 max: 6 } }
knob { name: "mode" variants: ["slow", "fast"] }
prior { expr: "step" top_k: 3 }
default {
  set { knob: "step" int: 3 } set { knob: "ratio" int: 4 }
  set { knob: "power" int: 2 } set { knob: "part" int: 2 }
  set { knob: "mode" variant: "slow" }
}
)";

class SpaceChangeTest : public ::testing::Test {
 protected:
  proto::Space Original() {
    return Space::Parse(kSpace, "test.space.textproto")->proto();
  }
  std::unique_ptr<BoundSpace> Bind(const std::string& text) {
    const auto space = Space::Parse(text, "changed.space.textproto");
    EXPECT_TRUE(space.ok()) << space.status();
    auto bound = space->Bind(*ParseShape("n=24/f32"), proto::Hardware());
    EXPECT_TRUE(bound.ok()) << bound.status();
    return *std::move(bound);
  }
  std::vector<int64_t> LevelsOf(const std::string& knob, bool upwards) {
    const auto text = WithWiderKnob(Original(), knob, upwards);
    EXPECT_TRUE(text.ok()) << text.status();
    const std::unique_ptr<BoundSpace> bound = Bind(*text);
    for (const KnobLevels& one : bound->knobs()) {
      if (one.name == knob) return {one.ints.begin(), one.ints.end()};
    }
    return {};
  }
};

TEST_F(SpaceChangeTest, RangesGoOnAsTheyEnd) {
  EXPECT_THAT(LevelsOf("step", true), ElementsAre(3, 5, 7, 9, 11));
  EXPECT_THAT(LevelsOf("step", false), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(LevelsOf("ratio", true), ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(LevelsOf("ratio", false), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(LevelsOf("power", true), ElementsAre(2, 4, 8, 16, 32, 64));
  EXPECT_THAT(LevelsOf("power", false), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(LevelsOf("part", true), ElementsAre(2, 3, 4, 6, 8, 12, 24));
  EXPECT_THAT(LevelsOf("part", false), ElementsAre(1, 2, 3, 4, 6));
}

TEST_F(SpaceChangeTest, KnobsWithoutARangeAreRefused) {
  for (const char* knob : {"mode", "none"}) {
    EXPECT_THAT(
        std::string(WithWiderKnob(Original(), knob, true).status().message()),
        HasSubstr(knob));
  }
}

TEST_F(SpaceChangeTest, ThePriorGoesAndAConstraintComes) {
  EXPECT_EQ(Bind(WithoutPrior(Original()))->top_k(), 0);
  const auto bound = Bind(WithConstraint(Original(), "step * power < 20", "m"));
  proto::Config config = bound->default_config();
  EXPECT_TRUE(bound->Validate(config).ok());
  for (proto::KnobValue& value : *config.mutable_set()) {
    if (value.knob() == "step") value.set_int_(7);
    if (value.knob() == "power") value.set_int_(8);
  }
  EXPECT_FALSE(bound->Validate(config).ok());
}

TEST_F(SpaceChangeTest, AConfigBecomesTheDefault) {
  const auto config = ParseConfig("mode=fast,part=6,power=16,ratio=8,step=5");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto bound = Bind(WithDefault(kSpace, *config));
  EXPECT_EQ(CanonicalText(bound->default_config()), CanonicalText(*config));
}

}  // namespace
}  // namespace optrail::tuning
