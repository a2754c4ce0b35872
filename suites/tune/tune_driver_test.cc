// Tasks are tuned with real workers, and by so few readings that nothing here
// depends on what they are.

#include "suites/tune/tune_driver.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file/file.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

class TuneDriver : public ::testing::Test {
 protected:
  TuneDriver() {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    auto context = FindRunContext(proto::CPU, "", "");
    EXPECT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    options_.quiet = true;
    options_.tune.sampling = DefaultSamplingOptions();
    options_.tune.strategy = "random";
    options_.tune.budget.set_trials(2);
    options_.tune.finalists = 1;
    options_.tune.rank_rounds = 1;
    options_.tune.proof.max_time = absl::Milliseconds(50);
    for (const char* shape : {"n=1000/f32", "n=3000/f32"}) {
      TaskSelection selection;
      selection.op_regex = "add";
      selection.shape_regex = shape;
      auto tasks = SelectTasks(selection, context_.hardware);
      EXPECT_TRUE(tasks.ok()) << tasks.status();
      tasks_.push_back((*tasks)[0]);
    }
    tasks_[1].count = 100;
  }

  // Another shape's session, from which something is expected of any.
  void RecordAnother() {
    proto::Session session;
    session.set_started_unix_ns(1'700'000'000'000'000'000);
    session.set_session_id(tracker::NewRecordId(session.started_unix_ns()));
    session.set_elapsed_ns(5'000'000'000);
    *session.mutable_task() = tasks_[0].task;
    session.mutable_task()->mutable_shape()->mutable_dims(0)->set_value(2000);
    session.mutable_proof()->set_gain(.3);
    session.mutable_proof()->set_claimed(true);
    session.mutable_proof()->add_default_measurements()->set_median_ns(500);
    const auto history = tracker::History::Open(context_.history);
    ASSERT_TRUE(history.ok()) << history.status();
    const absl::Status recorded = history->AppendSession(session);
    ASSERT_TRUE(recorded.ok()) << recorded;
  }

  // Sizes of the shapes, in the order in which their sessions began.
  std::vector<int64_t> TunedOrder() {
    const auto summaries = TuneTasks(tasks_, context_, options_);
    EXPECT_TRUE(summaries.ok()) << summaries.status();
    // The summaries keep the order of the tasks.
    for (size_t i = 0; i < tasks_.size(); ++i) {
      EXPECT_EQ(ShortTaskText((*summaries)[i].task),
                ShortTaskText(tasks_[i].task));
    }
    const auto history = tracker::History::Open(context_.history);
    const auto list = history->ListSessions();
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<int64_t> order;
    for (const tracker::SessionInfo& session : list->sessions) {
      const int64_t n = session.header.task().shape().dims(0).value();
      if (n != 2000) order.push_back(n);
    }
    return order;
  }

  const std::string folder_ =
      JoinPath(::testing::TempDir(),
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  RunContext context_;
  TuneDriverOptions options_;
  std::vector<TaskEntry> tasks_;
};

TEST_F(TuneDriver, BeginsWhereMostIsExpected) {
  RecordAnother();
  options_.most_gain_first = true;
  EXPECT_EQ(TunedOrder(), (std::vector<int64_t>{3000, 1000}));
}

TEST_F(TuneDriver, KeepsTheOrderOfTheTasksIfNothingIsKnown) {
  options_.most_gain_first = true;
  EXPECT_EQ(TunedOrder(), (std::vector<int64_t>{1000, 3000}));
}

TEST_F(TuneDriver, KeepsTheOrderOfTheTasksUnlessAskedOtherwise) {
  RecordAnother();
  EXPECT_EQ(TunedOrder(), (std::vector<int64_t>{1000, 3000}));
}

}  // namespace
}  // namespace optrail::suites

// Workers are this binary, too.
int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
