#include "suites/tune/transfer_sources.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kSpace[] = R"(
knob { name: "tile" divisors { dim: "n" } }
knob { name: "unroll" ints: [1, 2, 4] }
constraint { expr: "tile >= unroll" why: "no tail" }
default {
  set { knob: "tile" int: 4 }
  set { knob: "unroll" int: 1 }
}
)";

proto::Task Task(int64_t n, const std::string& hardware = "here") {
  proto::Task task;
  task.set_operator_name("toy");
  task.set_kernel_id("v1");
  task.set_hardware_id(hardware);
  task.set_threads(1);
  proto::Dim* dim = task.mutable_shape()->add_dims();
  dim->set_name("n");
  dim->set_value(n);
  task.mutable_shape()->add_data_types(proto::F32);
  return task;
}

tracker::SessionInfo Info(const std::string& id, const proto::Task& task,
                          int trials = 40) {
  tracker::SessionInfo info;
  info.header.set_session_id(id);
  *info.header.mutable_task() = task;
  info.trial_count = trials;
  return info;
}

void AddTrial(int64_t tile, int64_t unroll, proto::Outcome outcome,
              proto::Session& session) {
  proto::Trial* trial = session.add_trials();
  trial->set_outcome(outcome);
  if (outcome == proto::OK) trial->set_time_ns(1000.0 * tile);
  proto::KnobValue* value = trial->mutable_config()->add_set();
  value->set_knob("tile");
  value->set_int_(tile);
  value = trial->mutable_config()->add_set();
  value->set_knob("unroll");
  value->set_int_(unroll);
}

TEST(TaskDistanceTest, CountsDoublings) {
  EXPECT_EQ(TaskDistance(Task(64), Task(256)), 2.0);
  proto::Task threads = Task(64);
  threads.set_threads(4);
  EXPECT_EQ(TaskDistance(Task(64), threads), 2.0);
  proto::Task newer = Task(64);
  newer.set_kernel_id("v2");
  EXPECT_EQ(TaskDistance(Task(64), newer), 0.0);
  EXPECT_GT(*TaskDistance(Task(64), Task(64, "there")), 0);
}

TEST(TaskDistanceTest, NothingIsLearnedFromTheSameOrAnotherOperator) {
  EXPECT_EQ(TaskDistance(Task(64), Task(64)), absl::nullopt);
  proto::Task other = Task(128);
  other.set_operator_name("other");
  EXPECT_EQ(TaskDistance(Task(64), other), absl::nullopt);
  other = Task(128);
  other.mutable_shape()->set_data_types(0, proto::F16);
  EXPECT_EQ(TaskDistance(Task(64), other), absl::nullopt);
  other = Task(128);
  other.set_backend("openblas");
  EXPECT_EQ(TaskDistance(Task(64), other), absl::nullopt);
  other = Task(128);
  other.set_devices(2);
  EXPECT_EQ(TaskDistance(Task(64), other), absl::nullopt);
  // A convolution of another stride is another computation.
  other = Task(128);
  *other.mutable_shape()->mutable_attributes() =
      *tuning::ParseAttributes("stride=2");
  EXPECT_EQ(TaskDistance(Task(64), other), absl::nullopt);
  other = Task(128);
  other.set_launch_mode(proto::GRAPH);
  EXPECT_GT(*TaskDistance(Task(64), other), *TaskDistance(Task(64), Task(128)));
}

TEST(NearestTasksTest, AreTheFourNearestOfTheSameOperator) {
  proto::Task other = Task(65);
  other.set_operator_name("other");
  const std::vector<proto::Task> tasks = {Task(64),  Task(1024), other,
                                          Task(128), Task(64),   Task(256),
                                          Task(32),  Task(96),   Task(1 << 20)};
  EXPECT_THAT(NearestTasks(tasks, 0), ElementsAre(7, 3, 6, 5));
  EXPECT_THAT(NearestTasks({Task(64), other}, 0), IsEmpty());
}

TEST(ChooseTransferSessionsTest, TakesTheNewestOfEachTaskNearestFirst) {
  EXPECT_THAT(ChooseTransferSessions(
                  {Info("old", Task(128)), Info("far", Task(1024)),
                   Info("new", Task(128)), Info("same", Task(64)),
                   Info("beyond", Task(1 << 20)), Info("few", Task(32), 3)},
                  Task(64)),
              ElementsAre("new", "far"));
}

TEST(ChooseTransferSessionsTest, FourAreEnough) {
  std::vector<tracker::SessionInfo> sessions;
  for (int i = 0; i < 6; ++i) {
    sessions.push_back(Info(std::string(1, 'a' + i), Task(65 + i)));
  }
  EXPECT_THAT(ChooseTransferSessions(sessions, Task(64)),
              ElementsAre("a", "b", "c", "d"));
}

class LoadTransferSourcesTest : public ::testing::Test {
 protected:
  LoadTransferSourcesTest()
      : history_(*tracker::History::Open(
            ::testing::TempDir() + "/" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        space_(*tuning::Space::Parse(kSpace, "toy.space.textproto")) {}

  std::vector<tuning::TransferSource> Load(const proto::Session& session,
                                           int64_t n) {
    EXPECT_TRUE(history_.AppendSession(session).ok());
    proto::Session header;
    header.add_source_session_ids(session.session_id());
    header.add_source_session_ids("20260101T000000Z-0123456789abcdef");
    proto::Hardware hardware;
    bound_ = *space_.Bind(Task(n).shape(), hardware);
    return LoadTransferSources(history_, header.source_session_ids(), *bound_);
  }

  proto::Session SessionOf(int64_t n) {
    proto::Session session;
    session.set_started_unix_ns(1'700'000'000'000'000'000);
    session.set_session_id(tracker::NewRecordId(session.started_unix_ns()));
    *session.mutable_task() = Task(n);
    return session;
  }

  const tracker::History history_;
  const tuning::Space space_;
  std::unique_ptr<tuning::BoundSpace> bound_;
};

TEST_F(LoadTransferSourcesTest, LeavesOutWhatThisSpaceLacks) {
  proto::Session session = SessionOf(96);
  for (const int64_t tile : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96}) {
    AddTrial(tile, 1, proto::OK, session);
    AddTrial(tile, 2, proto::CRASHED, session);
    AddTrial(tile, 4, proto::CONTENDED, session);
  }
  const auto sources = Load(session, 64);
  ASSERT_EQ(sources.size(), 1u);
  // Tiles 1, 2, 4, 8, 16 and 32 divide both; those with 4 tell nothing.
  EXPECT_EQ(sources[0].trials.size(), 12u);
  EXPECT_EQ(sources[0].name, session.session_id());
  for (const tuning::Trial& trial : sources[0].trials) {
    EXPECT_EQ(trial.outcome == proto::OK, !trial.objectives.empty());
  }
}

TEST_F(LoadTransferSourcesTest, TooFewTrialsAreNoSource) {
  proto::Session session = SessionOf(128);
  for (const int64_t tile : {1, 2, 4, 8}) {
    AddTrial(tile, 1, proto::OK, session);
  }
  EXPECT_THAT(Load(session, 64), IsEmpty());
}

}  // namespace
}  // namespace optrail::suites
