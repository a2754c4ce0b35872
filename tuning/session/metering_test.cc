#include "tuning/session/metering.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// A device takes 100 W while it is on, the work takes .1 mJ, and the variant
// "wide" a tenth more.
double JoulesOf(double time_ns, bool wide) {
  return (100e-9 * time_ns + 1e-4) * (wide ? 1.1 : 1);
}

proto::Trial TrialOf(int tile, bool wide, double time_ns, bool metered) {
  proto::Trial trial;
  *trial.mutable_config() = *ParseConfig(
      absl::StrCat("kind=", wide ? "wide" : "narrow", ",tile=", tile));
  trial.set_outcome(proto::OK);
  trial.set_time_ns(time_ns);
  if (metered) {
    proto::MetricSamples* joules = trial.add_objectives();
    joules->set_metric("joules");
    joules->add_values(JoulesOf(time_ns, wide));
  }
  return trial;
}

std::vector<proto::Objective> Joules() {
  proto::Objective joules = TimeObjective();
  joules.set_metric("joules");
  return {joules};
}

// The first `count` of a search whose times fall, all of them metered.
Metering After(int count, int64_t budget) {
  Metering metering({"joules"}, budget);
  for (int i = 0; i < count; ++i) {
    metering.Add(TrialOf(1 << (i % 4), i % 2 == 1, 5000 - 400 * i, true));
  }
  return metering;
}

TEST(MeteringTest, WithoutCostlyMetricsItDoesNothing) {
  Metering metering({}, 40);
  EXPECT_FALSE(metering.active());
  const proto::Trial trial = TrialOf(1, false, 1000, false);
  EXPECT_EQ(metering.Completed(trial).objectives_size(), 0);
}

TEST(MeteringTest, APredictionHasADeviationAndAReadingNone) {
  const proto::Trial lacking = TrialOf(2, true, 3000, false);
  const auto deviation_of = [](const Metering& metering,
                               const proto::Trial& trial) {
    return metering.CompletedFor(Joules(), trial).deviation;
  };
  EXPECT_EQ(deviation_of(Metering({}, 40), lacking), 0);
  EXPECT_EQ(deviation_of(Metering({"joules"}, 40), lacking), 0);
  const Metering metering = After(4, 40);
  EXPECT_EQ(deviation_of(metering, TrialOf(2, true, 3000, true)), 0);
  // Few readings say little; the true spread is 10%.
  EXPECT_GT(deviation_of(metering, lacking), .02);
  EXPECT_LT(deviation_of(metering, lacking), .2);
  EXPECT_EQ(ValueOf(metering.CompletedFor(Joules(), lacking).trial, "joules"),
            ValueOf(metering.Completed(lacking), "joules"));
}

TEST(MeteringTest, ADeviationBelongsToTheObjectiveThatIsPredicted) {
  const proto::Trial lacking = TrialOf(2, true, 3000, false);
  const Metering metering = After(4, 40);
  const double deviation = metering.CompletedFor(Joules(), lacking).deviation;
  const proto::Objective joules = Joules()[0];
  const PredictedTrial second =
      metering.CompletedFor({TimeObjective(), joules}, lacking);
  EXPECT_EQ(second.objective, 1);
  EXPECT_EQ(second.deviation, deviation);
  EXPECT_EQ(metering.CompletedFor({TimeObjective()}, lacking).deviation, 0);
  // An objective that is computed from it is as uncertain.
  proto::Objective product;
  product.set_metric("edp");
  proto::Objective::Term* term = product.add_terms();
  term->set_factor(1);
  term->add_metrics("time");
  term->add_metrics("joules");
  EXPECT_EQ(metering.CompletedFor({product}, lacking).deviation, deviation);
}

TEST(MeteringTest, TheFirstTrialsAreMeteredUnlessOthersAreFarFaster) {
  Metering metering({"joules"}, 40);
  const auto below = [&] {
    return metering.MeterBelowNs(*ParseConfig("kind=wide,tile=1"), Joules());
  };
  EXPECT_TRUE(std::isinf(below()));
  for (int i = 0; i < 2; ++i) {
    metering.Add(TrialOf(1, true, 1000, true));
    EXPECT_EQ(below(), 1500);
  }
  metering.Add(TrialOf(1, true, 1000, true));
  EXPECT_LT(below(), 1500);
}

TEST(MeteringTest, WhatCannotBeTheBestIsTimedAlone) {
  const Metering metering = After(4, 0);
  const double best_ns = 5000 - 3 * 400;
  const double below =
      metering.MeterBelowNs(*ParseConfig("kind=narrow,tile=2"), Joules());
  EXPECT_GT(below, .9 * best_ns);
  EXPECT_LT(below, 1.3 * best_ns);
}

TEST(MeteringTest, ReadingsAreFewAndSpreadOverTheSearch) {
  const proto::Config config = *ParseConfig("kind=narrow,tile=2");
  // After as many trials as readings, most of 40 are to come.
  EXPECT_EQ(After(4, 40).MeterBelowNs(config, Joules()), 0);
  EXPECT_GT(After(4, 5).MeterBelowNs(config, Joules()), 0);
  EXPECT_EQ(After(kMeteredTrials, 0).MeterBelowNs(config, Joules()), 0);
  // The fastest, which a limit follows, is read again later.
  std::vector<proto::Objective> limited = Joules();
  limited.push_back(TimeObjective());
  limited.back().set_limit_over_best(1.05);
  EXPECT_GT(After(kMeteredTrials - 1, 0).MeterBelowNs(config, Joules()), 0);
  EXPECT_EQ(After(kMeteredTrials - 1, 0).MeterBelowNs(config, limited), 0);
}

TEST(MeteringTest, ALimitOnTimeCountsBeforeAnythingIsMetered) {
  std::vector<proto::Objective> objectives = Joules();
  objectives.push_back(TimeObjective());
  objectives[1].set_limit(2000);
  const Metering metering = After(4, 0);
  const double below =
      metering.MeterBelowNs(*ParseConfig("kind=narrow,tile=2"), objectives);
  // Nothing that was read is within it: what is, is the best.
  EXPECT_TRUE(std::isinf(below));
  objectives[1].set_limit(3900);
  EXPECT_LE(
      metering.MeterBelowNs(*ParseConfig("kind=narrow,tile=2"), objectives),
      3900);
}

TEST(MeteringTest, PredictsByTimeAndKnobs) {
  const Metering metering = After(8, 0);
  for (const bool wide : {false, true}) {
    for (const double time_ns : {2500., 3500., 4500.}) {
      const proto::Trial completed =
          metering.Completed(TrialOf(4, wide, time_ns, false));
      const auto joules = ValueOf(completed, "joules");
      ASSERT_TRUE(joules.has_value());
      EXPECT_NEAR(*joules / JoulesOf(time_ns, wide), 1, .03)
          << wide << " " << time_ns;
    }
  }
  // What was read is not touched, and what failed is not predicted.
  EXPECT_EQ(metering.Completed(TrialOf(4, true, 10, true)).objectives_size(),
            1);
  proto::Trial failed = TrialOf(4, true, 10, false);
  failed.set_outcome(proto::CRASHED);
  EXPECT_EQ(metering.Completed(failed).objectives_size(), 0);
}

TEST(MeteringTest, KnownTrialsTeachAndAreNoReadings) {
  Metering metering({"joules"}, 40);
  for (int i = 0; i < 10; ++i) {
    metering.AddKnown(TrialOf(1 << (i % 4), i % 2 == 1, 5000 - 300 * i, true));
  }
  EXPECT_GT(metering.MeterBelowNs(*ParseConfig("kind=narrow,tile=2"), Joules()),
            0);
}

}  // namespace
}  // namespace optrail::tuning
