#include "tracker/convergence/convergence.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::NanSensitiveDoubleEq;

proto::Session SessionOf(const std::vector<double>& times_ns) {
  proto::Session session;
  for (const double time_ns : times_ns) {
    proto::Trial* trial = session.add_trials();
    trial->set_elapsed_ns(1000);
    if (time_ns > 0) {
      trial->set_outcome(proto::OK);
      trial->set_time_ns(time_ns);
    } else {
      trial->set_outcome(proto::OUT_OF_MEMORY);
    }
  }
  return session;
}

void AddFinalist(double first_ns, double verified_ns, bool is_default,
                 proto::Session* session) {
  proto::Finalist* finalist = session->add_finalists();
  proto::KnobValue* value = finalist->mutable_config()->add_set();
  value->set_knob("k");
  value->set_int_(session->finalists_size());
  finalist->set_first_time_ns(first_ns);
  finalist->set_time_ns(verified_ns);
  finalist->set_outcome(proto::OK);
  finalist->set_is_default(is_default);
}

TEST(AnalyzeSession, CountsTrialsUntilItIsNearItsBest) {
  const SessionAnalysis analysis =
      AnalyzeSession(SessionOf({0, 200, 150, 300, 104, 101, 100, 120}));
  EXPECT_EQ(*analysis.best_ns, 100);
  EXPECT_EQ(*analysis.trials_to_95_percent, 5) << "100 / 104 is above 95%";
  EXPECT_EQ(*analysis.trials_to_99_percent, 6);
  EXPECT_EQ(analysis.improvements.size(), 5);
  EXPECT_EQ(analysis.outcomes.out_of_memory, 1);
  EXPECT_DOUBLE_EQ(analysis.useless_share(), 1. / 8);
  EXPECT_DOUBLE_EQ(*analysis.time_per_trial_ns, 1000);
}

TEST(AnalyzeSession, TheRegretCurveBeginsWithTheFirstReading) {
  EXPECT_THAT(AnalyzeSession(SessionOf({0, 200, 300, 100})).best_so_far_ns,
              ElementsAre(NanSensitiveDoubleEq(NAN), DoubleEq(200),
                          DoubleEq(200), DoubleEq(100)));
}

TEST(AnalyzeSession, WarmStartTrialsAreNoProgressOfItsOwn) {
  proto::Session session = SessionOf({100, 200, 150});
  session.set_warm_start_trial_count(1);
  const SessionAnalysis analysis = AnalyzeSession(session);
  EXPECT_EQ(analysis.trial_count(), 2);
  EXPECT_EQ(*analysis.best_ns, 150);
}

TEST(AnalyzeSession, TheWinnersCurseIsVerifiedOverFirst) {
  proto::Session session = SessionOf({100, 200});
  AddFinalist(100, 110, false, &session);
  AddFinalist(104, 112, false, &session);
  AddFinalist(200, 220, true, &session);
  *session.mutable_winner() = session.finalists(0).config();
  const SessionAnalysis analysis = AnalyzeSession(session);
  EXPECT_NEAR(*analysis.winners_curse, .1, 1e-12);
  EXPECT_NEAR(*analysis.speedup_over_default, 2, 1e-12);
  EXPECT_EQ(*analysis.winner_ns, 110);
}

TEST(AnalyzeSession, NonsenseIsAbsentNotFatal) {
  const SessionAnalysis nothing = AnalyzeSession(proto::Session());
  EXPECT_FALSE(nothing.best_ns.has_value());
  EXPECT_EQ(nothing.useless_share(), 0);
  proto::Session session = SessionOf({100});
  session.mutable_trials(0)->set_time_ns(-3);
  session.add_trials()->set_outcome(proto::OK);
  session.add_trials()->set_outcome(proto::OK);
  session.mutable_trials(2)->set_time_ns(NAN);
  EXPECT_FALSE(AnalyzeSession(session).best_ns.has_value());
}

}  // namespace
}  // namespace optrail::tracker
