#include "suites/tune/known_trials.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/numerics.h"

namespace optrail::suites {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kStartNs = 1795000000LL * 1000000000;
constexpr int64_t kMinuteNs = 60LL * 1000000000;

class KnownTrialsTest : public ::testing::Test {
 protected:
  KnownTrialsTest() : history_(*tracker::History::Open("/history", &fs_)) {
    task_.set_operator_name("add");
    task_.set_hardware_id("test-2c");
  }

  // Later than the one before it.
  proto::Session NewSession() {
    proto::Session session;
    session.set_started_unix_ns(kStartNs + ++sessions_ * kMinuteNs);
    session.set_session_id(tracker::NewRecordId(session.started_unix_ns()));
    *session.mutable_task() = task_;
    return session;
  }

  static void AddMeasured(proto::Session& session, const std::string& config,
                          double time_ns, proto::Outcome outcome = proto::OK) {
    proto::Trial* trial = session.add_trials();
    *trial->mutable_config() = *tuning::ParseConfig(config);
    trial->set_outcome(outcome);
    trial->set_detail("as it went");
    trial->set_elapsed_ns(1'000'000);
    if (outcome == proto::OK) trial->set_time_ns(time_ns);
    proto::Measurement* measurement = trial->add_measurements();
    measurement->set_calls_per_sample(1);
    for (int i = 0; i < 50; ++i) measurement->add_sample_ns(1000 + i);
    proto::MetricSamples* joules = trial->add_objectives();
    joules->set_metric("joules");
    joules->add_values(2 * time_ns);
  }

  void Append(const proto::Session& session) {
    const absl::Status appended = history_.AppendSession(session);
    ASSERT_TRUE(appended.ok()) << appended;
  }

  std::vector<proto::Trial> Known() {
    return KnownTrials(history_, history_.ListSessions()->sessions, task_);
  }

  // "CONFIG from SESSION", in order.
  std::vector<std::string> KnownTexts() {
    std::vector<std::string> texts;
    for (const proto::Trial& trial : Known()) {
      texts.push_back(absl::StrCat(tuning::CanonicalText(trial.config()),
                                   " from ", trial.session_id()));
    }
    return texts;
  }

  FaultInjectingFileSystem fs_;
  tracker::History history_;
  proto::Task task_;
  int sessions_ = 0;
};

TEST_F(KnownTrialsTest, HaveWhatAStrategyIsToldAndNoSamples) {
  proto::Session session = NewSession();
  AddMeasured(session, "unroll=1", 100);
  Append(session);
  const std::vector<proto::Trial> known = Known();
  ASSERT_EQ(known.size(), 1);
  EXPECT_EQ(tuning::CanonicalText(known[0].config()), "unroll=1");
  EXPECT_EQ(known[0].outcome(), proto::OK);
  EXPECT_EQ(known[0].time_ns(), 100);
  ASSERT_EQ(known[0].objectives_size(), 1);
  EXPECT_EQ(known[0].objectives(0).values(0), 200);
  EXPECT_EQ(known[0].session_id(), session.session_id());
  EXPECT_EQ(known[0].measurements_size(), 0);
}

TEST_F(KnownTrialsTest, AreTheNewestOfEachConfigThatDecidedItsOutcome) {
  proto::Session first = NewSession(), second = NewSession();
  AddMeasured(first, "unroll=1", 100);
  AddMeasured(first, "unroll=2", 90);
  AddMeasured(first, "unroll=3", 0, proto::WRONG_RESULT);
  AddMeasured(first, "unroll=4", 0, proto::TIMED_OUT);
  AddMeasured(second, "unroll=1", 80);
  Append(first);
  Append(second);
  EXPECT_THAT(KnownTexts(), ElementsAre("unroll=1 from " + second.session_id(),
                                        "unroll=2 from " + first.session_id(),
                                        "unroll=3 from " + first.session_id()));
}

TEST_F(KnownTrialsTest, KeepTheIdOfTheSessionThatMeasuredThem) {
  proto::Session first = NewSession(), second = NewSession();
  AddMeasured(first, "unroll=1", 100);
  Append(first);
  for (const proto::Trial& known : Known()) *second.add_trials() = known;
  second.set_warm_start_trial_count(1);
  AddMeasured(second, "unroll=2", 90);
  Append(second);
  EXPECT_THAT(KnownTexts(),
              ElementsAre("unroll=1 from " + first.session_id(),
                          "unroll=2 from " + second.session_id()));
}

// Before Trial.session_id, warm-start trials were stored with their samples.
TEST_F(KnownTrialsTest, OfOlderRecordsComeFromTheSessionThatHoldsTheSamples) {
  proto::Session session = NewSession();
  AddMeasured(session, "unroll=1", 100);
  session.set_warm_start_trial_count(1);
  Append(session);
  EXPECT_THAT(KnownTexts(),
              ElementsAre("unroll=1 from " + session.session_id()));
  EXPECT_EQ(Known()[0].measurements_size(), 0);
}

// A search within a class, and the entry of a config that is not run again,
// need it.
TEST_F(KnownTrialsTest, TellWhatIsKnownOfTheirBits) {
  proto::Session session = NewSession();
  AddMeasured(session, "a=1", 500);
  auto& facts = *session.mutable_trials(0)->mutable_facts();
  tuning::AddNumerics(uint64_t{0x123} << 52, &facts);
  tuning::AddBatchInvariance(true, &facts);
  proto::Fact* other = facts.Add();
  other->set_name("registers");
  Append(session);
  const std::vector<proto::Trial> known = Known();
  ASSERT_EQ(known.size(), 1);
  EXPECT_EQ(tuning::NumericsOf(known[0]), "123000000000, batch-invariant");
  EXPECT_EQ(known[0].facts_size(), 2);
}

}  // namespace
}  // namespace optrail::suites
