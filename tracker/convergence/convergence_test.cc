#include "tracker/convergence/convergence.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
  EXPECT_EQ(*analysis.best_cost, 100);
  EXPECT_EQ(*analysis.trials_to_95_percent, 5) << "100 / 104 is above 95%";
  EXPECT_EQ(*analysis.trials_to_99_percent, 6);
  EXPECT_EQ(analysis.improvements.size(), 5);
  EXPECT_EQ(analysis.outcomes.out_of_memory, 1);
  EXPECT_DOUBLE_EQ(analysis.useless_share(), 1. / 8);
  EXPECT_DOUBLE_EQ(*analysis.time_per_trial_ns, 1000);
}

TEST(AnalyzeSession, TheRegretCurveBeginsWithTheFirstReading) {
  EXPECT_THAT(AnalyzeSession(SessionOf({0, 200, 300, 100})).best_so_far,
              ElementsAre(NanSensitiveDoubleEq(NAN), DoubleEq(200),
                          DoubleEq(200), DoubleEq(100)));
}

TEST(AnalyzeSession, WarmStartTrialsAreNoProgressOfItsOwn) {
  proto::Session session = SessionOf({100, 200, 150});
  session.set_warm_start_trial_count(1);
  const SessionAnalysis analysis = AnalyzeSession(session);
  EXPECT_EQ(analysis.trial_count(), 2);
  EXPECT_EQ(*analysis.best_cost, 150);
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
  EXPECT_EQ(*analysis.winner_cost, 110);
}

TEST(AnalyzeSession, NonsenseIsAbsentNotFatal) {
  const SessionAnalysis nothing = AnalyzeSession(proto::Session());
  EXPECT_FALSE(nothing.best_cost.has_value());
  EXPECT_EQ(nothing.useless_share(), 0);
  proto::Session session = SessionOf({100});
  session.mutable_trials(0)->set_time_ns(-3);
  session.add_trials()->set_outcome(proto::OK);
  session.add_trials()->set_outcome(proto::OK);
  session.mutable_trials(2)->set_time_ns(NAN);
  EXPECT_FALSE(AnalyzeSession(session).best_cost.has_value());
}

void SetKnob(int64_t value, proto::Config* config) {
  proto::KnobValue* knob = config->add_set();
  knob->set_knob("tile");
  knob->set_int_(value);
}

// The default read as .62 of the winner's time while they were ranked; the
// proof, in rounds of its own, saved 10.5%.
proto::Session ProvenSession(bool claimed) {
  proto::Session session = SessionOf({200, 100});
  AddFinalist(1000, 620, /*is_default=*/true, &session);
  AddFinalist(1050, 1000, /*is_default=*/false, &session);
  *session.mutable_winner() = session.finalists(claimed ? 1 : 0).config();
  session.mutable_proof()->set_metric("time");
  session.mutable_proof()->set_gain(.105);
  session.mutable_proof()->set_gain_low(.09);
  session.mutable_proof()->set_gain_high(.12);
  session.mutable_proof()->set_rounds(42);
  session.mutable_proof()->set_claimed(claimed);
  return session;
}

TEST(AnalyzeSession, TheSpeedupIsThatOfTheProofNotOfTheRanking) {
  const SessionAnalysis proven = AnalyzeSession(ProvenSession(true));
  EXPECT_NEAR(*proven.speedup_over_default, 1 / (1 - .105), 1e-9);
  EXPECT_THAT(WinnerText(proven),
              AllOf(HasSubstr("winner k=2"), HasSubstr("42 paired rounds"),
                    HasSubstr("10.5% better")));
  const SessionAnalysis unproven = AnalyzeSession(ProvenSession(false));
  EXPECT_EQ(*unproven.speedup_over_default, 1) << "the default stays";
  proto::Session old = ProvenSession(true);
  old.clear_proof();
  EXPECT_NEAR(*AnalyzeSession(old).speedup_over_default, .62, 1e-9);
  EXPECT_THAT(WinnerText(AnalyzeSession(old)), HasSubstr("not proven"));
}

TEST(AnalyzeSession, SaysHowManyFinalistsWereWorseThanFirstRead) {
  EXPECT_EQ(FinalistsText(AnalyzeSession(ProvenSession(true))),
            "0 of 1 finalist cost more when measured again than when first "
            "read (-4.8% in the median; the winner -4.8%)");
  EXPECT_EQ(FinalistsText(AnalyzeSession(SessionOf({100}))), "");
}

TEST(AnalyzeSession, ACommandsTaskIsItsProgram) {
  proto::Session session;
  session.mutable_task()->set_operator_name("command_run_sh");
  session.mutable_task()->set_device_kind(proto::CPU);
  session.mutable_task()->set_kernel_id("command-0123456789abcdef");
  const SessionAnalysis no_command = AnalyzeSession(session);
  EXPECT_EQ(no_command.task_text, "command_run_sh/cpu");
  session.mutable_command()->set_command("sh run.sh {b}");
  const SessionAnalysis one = AnalyzeSession(session);
  EXPECT_EQ(one.task_text, "command_run_sh/cpu/id=01234567");
  session.mutable_task()->set_kernel_id("command-0123456700000000");
  EXPECT_NE(AnalyzeSession(session).task_key, one.task_key);
  // Sessions from before programs were noted.
  session.mutable_task()->set_kernel_id("");
  EXPECT_EQ(AnalyzeSession(session).task_text, "command_run_sh/cpu");
}

TEST(AnalyzeSession, AMetricThatIsNotTimeIsItsOwn) {
  proto::Session session;
  proto::Objective* objective = session.add_objectives();
  objective->set_metric("ratio");
  objective->set_unit("x");
  objective->set_direction(proto::HIGHER_IS_BETTER);
  session.set_warm_start_trial_count(1);
  for (const double ratio : {9.0, 2.0, 2.5, 2.25, 3.375}) {
    proto::Trial* trial = session.add_trials();
    trial->set_outcome(proto::OK);
    SetKnob(session.trials_size(), trial->mutable_config());
    proto::MetricSamples* samples = trial->add_objectives();
    samples->set_metric("ratio");
    samples->set_unit("x");
    samples->set_direction(proto::HIGHER_IS_BETTER);
    samples->add_values(ratio);
  }
  const SessionAnalysis analysis = AnalyzeSession(session);
  EXPECT_FALSE(analysis.is_time());
  EXPECT_EQ(analysis.best_value(), 3.375);
  EXPECT_EQ(analysis.improvements.size(), 3);
  EXPECT_EQ(analysis.trials_to_95_percent, 4);
  EXPECT_EQ(
      ProgressText(analysis),
      "4 trials beside 1 of earlier sessions, the best of them with ratio "
      "3.375 x after trial 4, within 5% of it after trial 4");
  // The gain of a value, not of time.
  session.mutable_proof()->set_gain(.5);
  session.mutable_proof()->set_claimed(true);
  EXPECT_NEAR(*AnalyzeSession(session).speedup_over_default, 1.5, 1e-9);
}

}  // namespace
}  // namespace optrail::tracker
