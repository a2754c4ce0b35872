#include "reports/proof_sides.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

proto::Measurement Reading(double time_ns, double joules) {
  proto::Measurement reading;
  reading.set_median_ns(time_ns);
  proto::MeterWindow* window = reading.add_windows();
  window->set_metric("joules");
  window->set_unit("J");
  window->set_calls(10);
  window->set_value(10 * joules);
  return reading;
}

proto::Session Proven(int rounds) {
  proto::Session session;
  for (const char* text : {"x=1", "x=2"}) {
    proto::Trial* trial = session.add_trials();
    *trial->mutable_config() = *tuning::ParseConfig(text);
    trial->set_error_in_tolerances(text[2] == '1' ? .25 : .5);
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = trial->config();
    finalist->set_is_default(text[2] == '1');
  }
  proto::Proof& proof = *session.mutable_proof();
  *proof.mutable_candidate() = *tuning::ParseConfig("x=2");
  for (int i = 0; i < rounds; ++i) {
    // A little slower, with a tenth less energy.
    *proof.add_default_measurements() = Reading(1000 + i, 2 + .001 * i);
    *proof.add_candidate_measurements() = Reading(1010 + 2 * i, 1.8 + .001 * i);
  }
  return session;
}

TEST(ProofSidesTest, ComparesEveryMetricInTheSameRounds) {
  const std::vector<ProofSide> sides = SidesOf(Proven(8));
  ASSERT_EQ(sides.size(), 3);
  EXPECT_EQ(sides[0].metric, "time");
  EXPECT_NEAR(*sides[0].ratio, 1.0135, .001);
  EXPECT_EQ(sides[1].metric, "joules");
  EXPECT_EQ(sides[1].unit, "J");
  EXPECT_EQ(sides[1].rounds, 8);
  EXPECT_NEAR(*sides[1].ratio, .9, .002);
  EXPECT_LT(*sides[1].high, 1);
  EXPECT_LT(*sides[1].p_value, .01);
  EXPECT_EQ(sides[2].metric, "error");
  EXPECT_EQ(sides[2].chosen, .5);
  EXPECT_FALSE(sides[2].p_value.has_value());
}

TEST(ProofSidesTest, OneRoundHasNoPValue) {
  const std::vector<ProofSide> sides = SidesOf(Proven(1));
  ASSERT_EQ(sides.size(), 3);
  EXPECT_FALSE(sides[0].p_value.has_value());
  EXPECT_FALSE(sides[0].ratio.has_value());
}

TEST(ProofSidesTest, NoProofHasNoSides) {
  EXPECT_THAT(SidesOf(proto::Session()), testing::IsEmpty());
}

}  // namespace
}  // namespace optrail::reports
