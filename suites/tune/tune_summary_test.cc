#include "suites/tune/tune_summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_THAT(csv, HasSubstr(",2,10,0,left_for_others,x=2"));
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

}  // namespace
}  // namespace optrail::suites
