#include "suites/tune/objectives.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/session/objective.h"

namespace optrail::suites {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FakeMeter : public ops::Meter {
 public:
  explicit FakeMeter(bool estimated) {
    info_.metric = "joules";
    info_.unit = "J";
    info_.estimated = estimated;
    info_.source = "a model";
  }
  const ops::MeterInfo& info() const override { return info_; }
  absl::Status Begin() override { return absl::OkStatus(); }
  absl::StatusOr<proto::MeterWindow> End(int64_t) override {
    return proto::MeterWindow();
  }

 private:
  ops::MeterInfo info_;
};

class ObjectivesTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<proto::Objective>> Parse(
      const std::string& text, std::vector<double> weights = {}) {
    source_.device = "fake";
    source_.meters = meters_;
    return ParseObjectives(text, weights, source_);
  }
  std::string Refusal(const std::string& text) {
    return std::string(Parse(text).status().message());
  }

  FakeMeter meter_{false}, model_{true};
  std::vector<ops::Meter*> meters_ = {&meter_};
  ObjectiveSource source_;
};

TEST_F(ObjectivesTest, SeveralWithALimitOfTheBest) {
  const auto objectives = Parse("joules,time<=1.05x");
  ASSERT_TRUE(objectives.ok()) << objectives.status();
  ASSERT_EQ(objectives->size(), 2);
  EXPECT_EQ((*objectives)[0].unit(), "J");
  EXPECT_EQ((*objectives)[1].unit(), "ns");
  EXPECT_EQ((*objectives)[1].limit_over_best(), 1.05);
  EXPECT_TRUE(tuning::NamesWinner(*objectives));
  EXPECT_EQ(ObjectiveKey(*objectives), "joules:min,time:min<=1.05x");
  EXPECT_FALSE(tuning::NamesWinner(*Parse("joules,time")));
  EXPECT_TRUE(tuning::NamesWinner(*Parse("joules,time", {2, 1})));
}

TEST_F(ObjectivesTest, KeysOfOneObjectiveAreItsName) {
  EXPECT_EQ(ObjectiveKey({}), "");
  EXPECT_EQ(ObjectiveKey(*Parse("time")), "");
  EXPECT_EQ(ObjectiveKey(*Parse("joules")), "joules");
  EXPECT_EQ(ObjectiveKey(*Parse("edp")), "edp");
}

TEST_F(ObjectivesTest, ComputedOnesFollowFromMetrics) {
  proto::Trial trial;
  trial.set_time_ns(2000);
  proto::MetricSamples* joules = trial.add_objectives();
  joules->set_metric("joules");
  joules->add_values(3);
  const auto value = [&](const std::string& text) {
    return *tuning::ValueOf(trial, ForTask(*Parse(text), 1e6, 500)[0]);
  };
  EXPECT_DOUBLE_EQ(value("edp"), 6e-6);
  EXPECT_DOUBLE_EQ(value("joules_per_flop"), 3e-6);
  EXPECT_DOUBLE_EQ(value("joules_per_byte"), .006);
  EXPECT_THAT(tuning::MetricsOf(*Parse("edp")), ElementsAre("joules", "time"));
  // A kWh is 3.6 MJ, an hour 3.6e12 ns; of a million calls.
  source_.price_per_kwh = .36;
  EXPECT_DOUBLE_EQ(value("cost"), .3);
  source_.price_per_hour = 3.6;
  EXPECT_DOUBLE_EQ(value("cost"), .3 + .002);
}

TEST_F(ObjectivesTest, WhatNeedsNoMeterIsThereWithoutOne) {
  meters_.clear();
  EXPECT_TRUE(Parse("memory,time<=1.1x").ok());
  EXPECT_TRUE(Parse("time,error<=0.5").ok());
  source_.price_per_hour = 2;
  EXPECT_TRUE(Parse("cost").ok());
  // Energy at a tariff needs one.
  source_.price_per_kwh = .2;
  EXPECT_THAT(Refusal("cost"), HasSubstr("--price_per_hour alone"));
  EXPECT_FALSE(Parse("edp").ok());
  // The refusal says why there is none.
  source_.no_joules = "unsupported here: no RAPL";
  for (const char* text : {"joules", "edp", "joules_per_flop", "cost"}) {
    EXPECT_THAT(Refusal(text),
                HasSubstr("energy meter: unsupported here: no RAPL"));
  }
  EXPECT_THAT(Refusal("watts"), Not(HasSubstr("no RAPL")));
}

TEST_F(ObjectivesTest, SaysWhatThereIs) {
  EXPECT_THAT(Refusal("watts"),
              HasSubstr("fake has no such objective here, expected time, "
                        "memory, error, joules, edp"));
  EXPECT_THAT(Refusal("cost"), HasSubstr("--price_per_kwh"));
  EXPECT_THAT(Refusal("time:max"), HasSubstr("time is minimised"));
  EXPECT_THAT(Refusal("time<=0.5x"), HasSubstr("at least 1x"));
  EXPECT_THAT(Refusal("joules,"), HasSubstr("no such objective"));
  EXPECT_THAT(Refusal("joules,joules"), HasSubstr("named twice"));
  meters_ = {&model_};
  EXPECT_THAT(Refusal("joules"), HasSubstr("estimated here (a model)"));
}

}  // namespace
}  // namespace optrail::suites
