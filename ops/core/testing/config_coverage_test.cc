#include "ops/core/testing/config_coverage.h"

#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

constexpr char kSpace[] = R"(
knob { name: "tile" ints: [1, 2, 4, 8] compile_time: true }
knob { name: "unroll" ints: [1, 2, 4] compile_time: true }
knob { name: "order" variants: ["rows", "columns"] }
knob { name: "pack" boolean: true }
constraint { expr: "tile * unroll <= 16" why: "registers" }
default {
  set { knob: "tile" int: 2 } set { knob: "unroll" int: 2 }
  set { knob: "order" variant: "rows" } set { knob: "pack" bool: false }
}
)";

class ConfigCoverageTest : public testing::Test {
 protected:
  ConfigCoverageTest() {
    auto space = tuning::Space::Parse(kSpace, "test.space.textproto");
    EXPECT_TRUE(space.ok()) << space.status();
    space_ = std::make_unique<tuning::Space>(*std::move(space));
    auto bound = space_->Bind(*tuning::ParseShape("n=8/f32"), {});
    EXPECT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
  }

  std::unique_ptr<tuning::Space> space_;
  std::unique_ptr<tuning::BoundSpace> bound_;
};

TEST_F(ConfigCoverageTest, EveryInstantiationAndEveryPairIsRun) {
  Rng rng(1);
  ConfigCoverage coverage;
  const auto configs = coverage.Choose(*bound_, {}, rng);
  std::set<std::string> ran;
  for (const proto::Config& config : configs) {
    EXPECT_TRUE(bound_->Validate(config).ok());
    const auto items = CoveredBy(config, {"tile", "unroll"});
    ran.insert(items.begin(), items.end());
  }
  for (const int tile : {1, 2, 4, 8}) {
    for (const int unroll : {1, 2, 4}) {
      const bool possible = tile * unroll <= 16;
      EXPECT_EQ(ran.count("instantiation tile=" + std::to_string(tile) +
                          " unroll=" + std::to_string(unroll)),
                possible ? 1 : 0)
          << tile << " " << unroll;
    }
    for (const char* order : {"rows", "columns"}) {
      EXPECT_EQ(ran.count(std::string("order=") + order +
                          "&tile=" + std::to_string(tile)),
                1)
          << tile << order;
    }
  }
  EXPECT_EQ(ran.count("order=columns&pack=true"), 1);
  // 44 configs are valid: far fewer do.
  EXPECT_LT(configs.size(), 20);
}

TEST_F(ConfigCoverageTest, TheNextShapeIsNotAskedForTheSame) {
  Rng rng(2);
  ConfigCoverage coverage;
  coverage.Choose(*bound_, {}, rng);
  const auto again = coverage.Choose(*bound_, {}, rng);
  ASSERT_EQ(again.size(), 1);
  EXPECT_EQ(tuning::CanonicalText(again[0]),
            tuning::CanonicalText(bound_->default_config()));
}

}  // namespace
}  // namespace optrail::ops
