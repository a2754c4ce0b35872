#include "tuning/session/shared_knobs.h"

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

std::vector<proto::Config> Configs(const std::vector<std::string>& texts) {
  std::vector<proto::Config> configs;
  for (const std::string& text : texts) configs.push_back(*ParseConfig(text));
  return configs;
}

TEST(SharedKnobsTest, NamesTheValueThatOnlyFailuresHave) {
  EXPECT_EQ(SharedKnobsText(Configs({"tile=1,unroll=4", "tile=2,unroll=4"}),
                            Configs({"tile=1,unroll=1", "tile=2,unroll=2"})),
            "all 2 have unroll=4, none of the 2 that worked");
}

TEST(SharedKnobsTest, CountsThoseThatWorkedAllTheSame) {
  EXPECT_EQ(SharedKnobsText(Configs({"u=4,v=a", "u=4,v=a"}),
                            Configs({"u=4,v=b", "u=1,v=a", "u=2,v=a"})),
            "all 2 have u=4, and 1 of the 3 that worked");
}

TEST(SharedKnobsTest, SaysNothingWithoutEvidence) {
  EXPECT_EQ(SharedKnobsText(Configs({"u=4"}), Configs({"u=1"})), "")
      << "one failure shares everything with itself";
  EXPECT_EQ(SharedKnobsText(Configs({"u=4", "u=4"}), {}), "");
  EXPECT_EQ(SharedKnobsText(Configs({"u=4", "u=2"}), Configs({"u=1"})), "");
  EXPECT_EQ(SharedKnobsText(Configs({"u=4", "u=4"}), Configs({"u=4", "u=4"})),
            "");
}

}  // namespace
}  // namespace optrail::tuning
