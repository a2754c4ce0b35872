#include "suites/tune/search_within.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;
using tuning::CanonicalText;

class RestrictToTest : public ::testing::Test {
 protected:
  RestrictToTest() {
    TaskSelection selection;
    selection.op_regex = "softmax";
    selection.shape_regex = "rows=512,cols=384/f32";
    hardware_.set_device_kind(proto::CPU);
    hardware_.set_cores(2);
    task_ = SelectTasks(selection, hardware_)->front();
    space_ = *BindTask(task_, hardware_);
    around_ = *tuning::ParseConfig(
        "algorithm=online,rows_per_task=8,stores=streaming,unroll=4");
  }

  proto::Hardware hardware_;
  TaskEntry task_;
  TaskSpace space_;
  proto::Config around_;
};

TEST_F(RestrictToTest, OtherKnobsStayAndTheConfigIsTheDefault) {
  const std::string whole = space_.space->hash();
  const auto text =
      RestrictTo({around_, {"unroll", "algorithm"}}, task_, hardware_, &space_);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CanonicalText(space_.bound->default_config()),
            CanonicalText(around_));
  EXPECT_NE(space_.space->hash(), whole);
  EXPECT_EQ(tuning::Space::Parse(*text, "again")->hash(), space_.space->hash());
  std::set<std::string> configs;
  ASSERT_TRUE(space_.bound->size().has_value());
  for (int64_t i = 0; i < *space_.bound->size(); ++i) {
    configs.insert(CanonicalText(space_.bound->ToConfig(space_.bound->At(i))));
  }
  EXPECT_EQ(configs.size(), 9u);  // three algorithms, three times unrolled
  for (const std::string& config : configs) {
    EXPECT_THAT(config, HasSubstr("rows_per_task=8,stores=streaming"));
  }
}

TEST_F(RestrictToTest, SaysWhichKnobItDoesNotKnow) {
  EXPECT_THAT(RestrictTo({around_, {"tile"}}, task_, hardware_, &space_)
                  .status()
                  .message(),
              HasSubstr("knob tile: expected one of algorithm, unroll"));
}

TEST_F(RestrictToTest, RefusesAConfigThatIsNotValid) {
  around_.mutable_set(1)->set_int_(3);
  EXPECT_EQ(RestrictTo({around_, {"unroll"}}, task_, hardware_, &space_)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace optrail::suites
