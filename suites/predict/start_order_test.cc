#include "suites/predict/start_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optrail::suites {
namespace {

proto::Task TaskOf(const std::string& op, int64_t n,
                   proto::DeviceKind kind = proto::CPU) {
  proto::Task task;
  task.set_operator_name(op);
  task.set_device_kind(kind);
  task.set_hardware_id("here");
  task.set_threads(1);
  auto* dim = task.mutable_shape()->add_dims();
  dim->set_name("n");
  dim->set_value(n);
  task.mutable_shape()->add_data_types(proto::F32);
  return task;
}

double NOf(const proto::Task& task) {
  return static_cast<double>(task.shape().dims(0).value());
}

// A session whose default takes 2 ns per n.
tracker::SessionInfo SessionOf(const proto::Task& task, double gain,
                               double seconds) {
  static int count = 0;
  tracker::SessionInfo info;
  info.header.set_session_id(absl::StrCat("session-", ++count));
  *info.header.mutable_task() = task;
  proto::Proof& proof = *info.header.mutable_proof();
  proof.set_gain(gain);
  proof.set_claimed(true);
  proof.add_default_measurements()->set_median_ns(2 * NOf(task));
  info.header.set_elapsed_ns(static_cast<int64_t>(seconds * 1e9));
  return info;
}

// softmax gains 50% in 10 s, matmul 1% in 10 s, slow 50% in 1000 s.
std::vector<tracker::SessionInfo> Sessions() {
  std::vector<tracker::SessionInfo> sessions;
  for (const int n : {1024, 2048, 4096}) {
    sessions.push_back(SessionOf(TaskOf("softmax", n), .5, 10));
    sessions.push_back(SessionOf(TaskOf("matmul", n), .01, 10));
    sessions.push_back(SessionOf(TaskOf("slow", n), .5, 1000));
  }
  return sessions;
}

std::vector<int> TasksOf(const std::vector<Start>& order) {
  std::vector<int> tasks;
  for (const Start& start : order) tasks.push_back(start.task);
  return tasks;
}

TEST(StartOrderTest, BeginsWhereARunSavesMostPerSecondOfTuning) {
  const GainPredictor predictor(Sessions(), NOf);
  const std::vector<StartTask> tasks = {{TaskOf("slow", 3000), 1},
                                        {TaskOf("matmul", 3000), 1},
                                        {TaskOf("softmax", 3000), 1}};
  const std::vector<Start> order = StartOrder(predictor, tasks);
  EXPECT_EQ(TasksOf(order)[0], 2);
  EXPECT_NEAR(order[0].call_ns, 6000, 1);
  EXPECT_NEAR(order[0].saved_ns, 3000, 200);
  EXPECT_NEAR(order[0].saved_ns_per_second, order[0].saved_ns / 10, 1e-6);
}

TEST(StartOrderTest, CallsAndSizesWeigh) {
  const GainPredictor predictor(Sessions(), NOf);
  const std::vector<StartTask> calls = {{TaskOf("softmax", 3000), 1},
                                        {TaskOf("matmul", 3000), 1000}};
  EXPECT_EQ(TasksOf(StartOrder(predictor, calls)), (std::vector<int>{1, 0}));
  const std::vector<StartTask> sizes = {{TaskOf("softmax", 500), 1},
                                        {TaskOf("softmax", 8000), 1}};
  EXPECT_EQ(TasksOf(StartOrder(predictor, sizes)), (std::vector<int>{1, 0}));
}

TEST(StartOrderTest, KeepsTheOrderOfWhatIsUnknownBehindTheRest) {
  const auto work = [](const proto::Task& task) {
    return task.operator_name() == "unheard" ? 0 : NOf(task);
  };
  const GainPredictor predictor(Sessions(), work);
  const std::vector<StartTask> tasks = {{TaskOf("unheard", 9), 100},
                                        {TaskOf("softmax", 5, proto::CUDA), 9},
                                        {TaskOf("matmul", 3000), 1},
                                        {TaskOf("softmax", 3000), 1}};
  const std::vector<Start> order = StartOrder(predictor, tasks);
  EXPECT_EQ(TasksOf(order), (std::vector<int>{3, 2, 0, 1}));
  EXPECT_FALSE(order[2].known());
  EXPECT_TRUE(absl::StrContains(StartOrderText(tasks, order),
                                "3. unheard n=9/f32: nothing is known of it"));
}

TEST(StartOrderTest, AnEmptyHistoryChangesAndSaysNothing) {
  const std::vector<StartTask> tasks = {{TaskOf("a", 1), 1},
                                        {TaskOf("b", 2), 9}};
  const std::vector<Start> order = StartOrder(GainPredictor({}), tasks);
  EXPECT_EQ(TasksOf(order), (std::vector<int>{0, 1}));
  EXPECT_EQ(StartOrderText(tasks, order), "");
}

TEST(StartOrderTest, ATaskThatWasTunedBeforeKnowsItsOwnTime) {
  std::vector<tracker::SessionInfo> sessions = Sessions();
  sessions.push_back(SessionOf(TaskOf("softmax", 3000), .2, 10));
  sessions.back().header.mutable_proof()->clear_default_measurements();
  sessions.back()
      .header.mutable_proof()
      ->add_default_measurements()
      ->set_median_ns(77);
  const std::vector<StartTask> tasks = {{TaskOf("softmax", 3000), 1}};
  EXPECT_EQ(StartOrder(GainPredictor(sessions, NOf), tasks)[0].call_ns, 77);
}

TEST(StartOrderTest, SaysWhy) {
  const std::vector<StartTask> tasks = {{TaskOf("softmax", 3000), 2}};
  Start start;
  start.prediction.emplace();
  start.prediction->gain = .25;
  start.prediction->seconds = 40;
  start.call_ns = 5e6;
  start.saved_ns = 2e6;
  start.saved_ns_per_second = 5e4;
  EXPECT_EQ(StartOrderText(tasks, {start}),
            "order of tuning: what a run is expected to save, per second of "
            "tuning\n"
            "  1. softmax n=3000/f32: 2.00 ms (25.0% faster) of 10.0 ms, after "
            "40.0 s\n");
}

}  // namespace
}  // namespace optrail::suites
