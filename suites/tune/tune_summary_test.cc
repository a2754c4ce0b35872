#include "suites/tune/tune_summary.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TuneSummary Tuned(const char* shape, int count, double default_ns,
                  double tuned_ns, int trials, proto::StopReason reason) {
  TuneSummary summary;
  summary.task.set_operator_name("add");
  *summary.task.mutable_shape() = *tuning::ParseShape(shape);
  summary.task.set_threads(1);
  summary.count = count;
  proto::Session session;
  for (const auto& [config, time_ns] :
       {std::make_pair("x=1", default_ns), std::make_pair("x=2", tuned_ns)}) {
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = *tuning::ParseConfig(config);
    finalist->set_outcome(proto::OK);
    finalist->set_time_ns(time_ns);
    finalist->set_is_default(time_ns == default_ns);
  }
  *session.mutable_winner() = session.finalists(1).config();
  for (int i = 0; i < trials; ++i) {
    session.add_trials()->set_outcome(proto::OK);
  }
  session.set_warm_start_trial_count(2);
  session.set_stop_reason(reason);
  summary.session = session;
  return summary;
}

TEST(TuneSummaryTest, SaysTrialsSpentAndWhyTheTaskStopped) {
  const std::string csv = FormatTuneSummaries(
      {Tuned("n=8/f32", 1, 100, 50, 12, proto::LEFT_FOR_OTHERS)},
      OutputFormat::kCsv);
  EXPECT_THAT(csv, HasSubstr(",2,,10,0,left_for_others,x=2"));
}

TEST(TuneSummaryTest, SaysWhatWasProven) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 50, 4, proto::TRIALS_SPENT);
  proto::Proof& proof = *summary.session->mutable_proof();
  proof.set_gain(.5);
  proof.set_gain_low(.49);
  proof.set_gain_high(.51);
  proof.set_claimed(true);
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kTable),
              HasSubstr("50.0% +-1.0%"));
  proof.set_claimed(false);
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kTable),
              HasSubstr("none proven"));
}

TEST(TuneSummaryTest, TimesAndGainAreOfTheSameRounds) {
  // The ranking saw them at 104 and 100, the proof at 110 and 100.
  TuneSummary summary = Tuned("n=8/f32", 3, 104, 100, 4, proto::TRIALS_SPENT);
  proto::Proof& proof = *summary.session->mutable_proof();
  proof.set_metric("time");
  proof.set_gain(1 - 100. / 110);
  proof.set_claimed(true);
  for (int round = 0; round < 3; ++round) {
    proof.add_default_measurements()->set_median_ns(110 + round - 1);
    proof.add_candidate_measurements()->set_median_ns(100 + round - 1);
  }
  const std::string text = FormatTuneSummaries({summary}, OutputFormat::kTable);
  EXPECT_THAT(text, AllOf(HasSubstr("110 ns"), HasSubstr("9.1%"),
                          Not(HasSubstr("speed-up"))));
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              HasSubstr(",110,100,1.1,"));
  EXPECT_THAT(WorkloadTotalText({summary}), HasSubstr("330 ns by default"));
  // Without a proof, the ranking is all there is.
  summary.session->clear_proof();
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kTable),
              AllOf(HasSubstr("104 ns"), HasSubstr("1.04x")));
}

TEST(TuneSummaryTest, ShowsJoulesWhereTheyWereTheObjective) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 110, 4, proto::TRIALS_SPENT);
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              testing::Not(HasSubstr("objective")));
  proto::Objective* objective = summary.session->add_objectives();
  objective->set_metric("joules");
  objective->set_unit("J");
  for (int i = 0; i < 2; ++i) {
    proto::MetricSamples* joules =
        summary.session->mutable_finalists(i)->add_objectives();
    joules->set_metric("joules");
    joules->add_values(1.5 - .25 * i);
  }
  TuneSummary failed;
  failed.task = summary.task;
  failed.error = "no device";
  failed.broke_off = true;
  const std::string table =
      FormatTuneSummaries({failed, summary}, OutputFormat::kTable);
  // The error is said beside the table, with what to do about it.
  EXPECT_THAT(table, Not(HasSubstr("no device")));
  EXPECT_THAT(FailuresText({failed, summary}),
              AllOf(HasSubstr(": no device; next: mend the cause"),
                    EndsWith("the trials made so far\n")));
  EXPECT_THAT(FormatTuneSummaries({failed, summary}, OutputFormat::kCsv),
              HasSubstr(",failed,,no device\n"));
  failed.error = "no worker; next: start one";
  EXPECT_THAT(FailuresText({failed}),
              EndsWith(": no worker; next: start one\n"));
  // There are no trials to go on with if the task itself is wrong.
  failed.error = "n: expected a multiple of 4";
  failed.broke_off = false;
  EXPECT_THAT(FailuresText({failed}),
              EndsWith(": n: expected a multiple of 4\n"));
  EXPECT_THAT(table, HasSubstr("default joules"));
  EXPECT_THAT(table, HasSubstr("1.5 J"));
  EXPECT_THAT(table, HasSubstr("1.25 J"));
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              HasSubstr(",1.5,1.25,"));
}

TEST(TuneSummaryTest, FailuresHaveAnOutcomeAReasonAndAPlaceToLook) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 50, 6, proto::TRIALS_SPENT);
  EXPECT_EQ(FailuresText({summary}), "");
  summary.session->set_session_id("20261121T000000Z-7");
  // The first two were known before and are not counted again.
  for (const int i : {1, 3, 5}) {
    proto::Trial& trial = *summary.session->mutable_trials(i);
    *trial.mutable_config() = *tuning::ParseConfig(absl::StrCat("x=", i));
    trial.set_outcome(proto::TIMED_OUT);
    trial.set_detail("no answer within 1s");
  }
  EXPECT_EQ(FailuresText({summary}),
            "add n=8/f32: 2 x TIMED_OUT, first x=3: no answer within 1s\n"
            "  all of them: optrail show 20261121T000000Z-7\n");
  for (const int i : {3, 5}) {
    *summary.session->mutable_trials(i)->mutable_config() =
        *tuning::ParseConfig(absl::StrCat("unroll=4,x=", i));
  }
  EXPECT_THAT(FailuresText({summary}),
              HasSubstr("2 x TIMED_OUT, all 2 have unroll=4, none of the "));
}

TEST(TuneSummaryTest, ADefaultThatIsWrongIsNoSilence) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 50, 6, proto::TRIALS_SPENT);
  proto::Finalist& fallback = *summary.session->mutable_finalists(0);
  fallback.clear_time_ns();
  fallback.set_outcome(proto::WRONG_RESULT);
  fallback.set_detail("y: 3 of 8 elements are wrong");
  EXPECT_EQ(FailuresText({summary}),
            "add n=8/f32: the default, nothing is proven against it: "
            "WRONG_RESULT: y: 3 of 8 elements are wrong\n");
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              HasSubstr("add n=8/f32,WRONG_RESULT,50,"));
}

TEST(TuneSummaryTest, AFinalistThatFailsOnAFrontIsNoSilence) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 50, 4, proto::TRIALS_SPENT);
  proto::Session& session = *summary.session;
  session.clear_winner();
  for (const char* metric : {"time", "joules"}) {
    session.add_objectives()->set_metric(metric);
  }
  ASSERT_TRUE(HasFront(session));
  session.mutable_finalists(1)->set_outcome(proto::CRASHED);
  session.mutable_finalists(1)->set_detail("signal 11");
  EXPECT_EQ(FailuresText({summary}), "add n=8/f32: x=2: CRASHED: signal 11\n");
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              HasSubstr("trials_spent"));
}

TEST(TuneSummaryTest, OneReasonStandsForAMissingWinner) {
  TuneSummary summary = Tuned("n=8/f32", 1, 100, 50, 4, proto::TRIALS_SPENT);
  proto::Session& session = *summary.session;
  session.clear_winner();
  for (int i = 0; i < session.trials_size(); ++i) {
    *session.mutable_trials(i)->mutable_config() =
        *tuning::ParseConfig(absl::StrCat("x=", i + 1));
    session.mutable_trials(i)->set_time_ns(100);
  }
  EXPECT_EQ(FailuresText({summary}),
            "add n=8/f32: none of the configs that worked may win\n");
  for (const auto format : {OutputFormat::kCsv, OutputFormat::kMarkdown}) {
    EXPECT_THAT(FormatTuneSummaries({summary}, format),
                AllOf(HasSubstr("none may win"),
                      HasSubstr("none of the configs that worked may win"),
                      Not(HasSubstr("no config works"))));
  }
  session.mutable_finalists(0)->set_outcome(proto::CRASHED);
  session.mutable_finalists(1)->set_outcome(proto::CRASHED);
  EXPECT_EQ(FailuresText({summary}),
            "add n=8/f32: no config that was run again worked: x=1 failed when "
            "it was run again: CRASHED; x=2 failed when it was run again: "
            "CRASHED\n");
  session.mutable_finalists(0)->set_outcome(proto::CONTENDED);
  EXPECT_THAT(FormatTuneSummaries({summary}, OutputFormat::kCsv),
              HasSubstr("machine too busy"));
}

TEST(TuneSummaryTest, ARunOfTheWorkloadIsCallsTimesTime) {
  TuneSummary skipped;
  skipped.skipped = true;
  EXPECT_EQ(
      WorkloadTotalText(
          {Tuned("n=8/f32", 10, 100e3, 50e3, 12, proto::TRIALS_SPENT),
           Tuned("n=9/f32", 1, 2e6, 5e5, 22, proto::TRIALS_SPENT), skipped}),
      "a run of these 2 tasks: 3.00 ms by default, 1.00 ms tuned (3.00x), "
      "after 30 trials\n");
}

TEST(TuneSummaryTest, NoTotalWhereNothingWasTuned) {
  EXPECT_EQ(WorkloadTotalText({TuneSummary()}), "");
}

TEST(TuneSummaryTest, SaysWhereTheTimeWent) {
  EXPECT_EQ(TimeText({TuneSummary()}, absl::Seconds(20)), "");
  std::vector<TuneSummary> summaries(2);
  for (TuneSummary& summary : summaries) {
    proto::SessionTime& time = *summary.session.emplace().mutable_time();
    time.set_measure_ns(5'000'000'000);
    time.set_compile_ns(10'000'000'000);
    time.set_wait_ns(1'000'000'000);
    time.set_rank_ns(500'000'000);
    time.set_prove_ns(2'000'000'000);
    time.mutable_effort()->set_open_ns(1'500'000'000);
    time.mutable_effort()->set_turn_ns(250'000'000);
    time.mutable_effort()->set_check_ns(1'000'000'000);
    time.mutable_effort()->set_busy_ns(5'000'000'000);
  }
  const std::string text = TimeText(summaries, absl::Seconds(20));
  EXPECT_EQ(
      text,
      "time: 10.0 s measuring, 2.00 s choosing and waiting, 1.00 s "
      "ranking, 4.00 s proving, 3.00 s opening processes, 500 ms waiting for "
      "other sessions on the device; 2.00 s of it checking results; 20.0 s "
      "compiling, 90% of it beside them; the device worked 50% of 20.0 s\n");
  // The trials of one session overlapped, and the other one waited.
  summaries[0].session->mutable_time()->set_wait_ns(-1'500'000'000);
  EXPECT_NE(TimeText(summaries, absl::Seconds(20))
                .find("10.0 s measuring, 1.50 s of it at the same time, 1.00 s "
                      "choosing and waiting"),
            std::string::npos);
  summaries[0].session->mutable_time()->set_compile_ns(0);
  summaries[1].session->mutable_time()->set_compile_ns(5'000'000);
  EXPECT_EQ(TimeText(summaries, absl::Seconds(20)).find("compiling"),
            std::string::npos);
}

}  // namespace
}  // namespace optrail::suites
