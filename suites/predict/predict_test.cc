#include "suites/predict/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace optrail::suites {
namespace {

proto::Task TaskOf(const std::string& op, int64_t n,
                   proto::DeviceKind kind = proto::CPU) {
  proto::Task task;
  task.set_operator_name(op);
  task.set_device_kind(kind);
  task.set_kernel_id("1");
  task.set_hardware_id("here");
  task.set_threads(1);
  auto* dim = task.mutable_shape()->add_dims();
  dim->set_name("n");
  dim->set_value(n);
  task.mutable_shape()->add_data_types(proto::F32);
  return task;
}

tracker::SessionInfo SessionOf(const proto::Task& task, double gain,
                               bool claimed = true) {
  static int count = 0;
  tracker::SessionInfo info;
  info.header.set_session_id(absl::StrCat("session-", ++count));
  *info.header.mutable_task() = task;
  info.header.mutable_proof()->set_gain(gain);
  info.header.mutable_proof()->set_claimed(claimed);
  info.header.set_elapsed_ns(30'000'000'000);
  return info;
}

TEST(GainPredictorTest, SimilarTasksCountMost) {
  std::vector<tracker::SessionInfo> sessions;
  for (const int n : {1024, 2048, 4096}) {
    sessions.push_back(SessionOf(TaskOf("softmax", n), .2));
    sessions.push_back(SessionOf(TaskOf("matmul", n), .01));
  }
  const GainPredictor predictor(sessions);
  const auto softmax = predictor.Predict(TaskOf("softmax", 3000));
  const auto matmul = predictor.Predict(TaskOf("matmul", 3000));
  ASSERT_TRUE(softmax.has_value());
  ASSERT_TRUE(matmul.has_value());
  EXPECT_NEAR(softmax->gain, .2, .02);
  EXPECT_NEAR(matmul->gain, .01, .02);
  EXPECT_EQ(softmax->sessions, 6);
  EXPECT_EQ(softmax->seconds, 30);
}

TEST(GainPredictorTest, TheTaskItselfAndWhatWasNotProvenTeachNothing) {
  const proto::Task task = TaskOf("softmax", 1024);
  EXPECT_FALSE(GainPredictor({}).Predict(task).has_value());
  EXPECT_FALSE(GainPredictor({SessionOf(task, .5)}).Predict(task).has_value());
  tracker::SessionInfo unproven = SessionOf(TaskOf("softmax", 2048), .5);
  unproven.header.clear_proof();
  EXPECT_FALSE(GainPredictor({unproven}).Predict(task).has_value());
  // The default stayed, whatever was measured.
  const auto kept =
      GainPredictor({SessionOf(TaskOf("softmax", 2048), .5, false)})
          .Predict(task);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->gain, 0);
}

TEST(GainPredictorTest, FewSessionsLeaveTheIntervalOpen) {
  std::vector<tracker::SessionInfo> sessions;
  for (const int n : {1024, 2048, 4096, 8192}) {
    const auto prediction =
        GainPredictor(sessions).Predict(TaskOf("softmax", 3000));
    EXPECT_EQ(prediction.has_value(), !sessions.empty());
    if (prediction.has_value()) {
      EXPECT_TRUE(std::isinf(prediction->gain_high)) << sessions.size();
      EXPECT_TRUE(std::isinf(prediction->seconds_high)) << sessions.size();
      EXPECT_EQ(prediction->gain_low, 0) << sessions.size();
    }
    sessions.push_back(SessionOf(TaskOf("softmax", n), .2));
  }
  const auto bounded = GainPredictor(sessions).Predict(TaskOf("softmax", 3000));
  ASSERT_TRUE(bounded.has_value());
  EXPECT_NEAR(bounded->gain_high, .2, 1e-9);
  EXPECT_EQ(bounded->seconds_high, 30);
}

// Long calls gain and short ones do not, whatever the operator.
TEST(GainPredictorTest, CallsOfTheSameTimeCountMore) {
  std::vector<tracker::SessionInfo> sessions;
  for (const int n : {1024, 2048, 4096}) {
    for (const char* op : {"sum", "exp"}) {
      const bool is_long = n == 4096;
      sessions.push_back(SessionOf(TaskOf(op, n), is_long ? .3 : .01));
      sessions.back()
          .header.mutable_proof()
          ->add_default_measurements()
          ->set_median_ns(is_long ? 1e6 : 1e3);
    }
  }
  const GainPredictor predictor(sessions);
  const proto::Task task = TaskOf("softmax", 1024);
  EXPECT_GT(predictor.Predict(task, {1e6})->gain, .25);
  EXPECT_LT(predictor.Predict(task, {1e3})->gain, .05);
  EXPECT_NEAR(predictor.Predict(task)->gain, .1, .03);
}

// Gains follow from times, and times do not follow from work: an interval for
// an estimated time is as wide as that makes it.
TEST(GainPredictorTest, AnEstimatedTimeMakesTheIntervalWider) {
  Rng rng(5);
  std::vector<tracker::SessionInfo> sessions;
  for (int i = 0; i < 60; ++i) {
    const bool is_long = rng.UniformInt(2) == 1;
    sessions.push_back(SessionOf(TaskOf("sum", 1000 + i), is_long ? .4 : .01));
    sessions.back()
        .header.mutable_proof()
        ->add_default_measurements()
        ->set_median_ns(is_long ? 1e6 : 1e3);
  }
  int calls = 0;
  const auto work = [&](const proto::Task&) {
    ++calls;
    return 1.;
  };
  const GainPredictor predictor(sessions, work);
  const proto::Task task = TaskOf("sum", 2000);
  const auto call = predictor.TimeOf(task);
  ASSERT_TRUE(call.has_value());
  EXPECT_TRUE(call->is_estimated);
  EXPECT_FALSE(predictor.TimeOf(TaskOf("sum", 1000))->is_estimated);
  const auto estimated = predictor.Predict(task, *call);
  EXPECT_LT(estimated->gain_low, .02);
  EXPECT_GT(estimated->gain_high, .3);
  const auto timed = predictor.Predict(task, {1e6});
  EXPECT_GT(timed->gain_low, .3);
  const PredictionScore score =
      ScorePredictions(predictor.LeaveOneOut(/*estimates=*/true));
  EXPECT_GE(score.covered, 54);
  // Once for each session, and once for the task.
  EXPECT_EQ(calls, 61);
}

TEST(GainPredictorTest, IntervalsCoverGainsOfALaw) {
  Rng rng(3);
  std::vector<tracker::SessionInfo> sessions;
  const std::vector<double> level = {.02, .1, .3};
  for (int i = 0; i < 150; ++i) {
    const int op = static_cast<int>(rng.UniformInt(3));
    sessions.push_back(SessionOf(TaskOf(absl::StrCat("op", op), 100 + 37 * i),
                                 level[op] * (.5 + rng.UniformReal())));
  }
  const PredictionScore score =
      ScorePredictions(GainPredictor(sessions).LeaveOneOut());
  EXPECT_EQ(score.predictions, 150);
  EXPECT_GE(score.covered, 130);
  EXPECT_GT(score.rank_correlation, .8);
  EXPECT_LT(score.median_error, .05);
}

TEST(GainPredictorTest, TheTimeIsThatOfTheWholeCall) {
  tracker::SessionInfo session = SessionOf(TaskOf("softmax", 2048), .2);
  // Budgets do not pay for it.
  session.header.mutable_time()->mutable_effort()->set_open_ns(12'000'000'000);
  const auto prediction =
      GainPredictor({session}).Predict(TaskOf("softmax", 1024));
  ASSERT_TRUE(prediction.has_value());
  EXPECT_EQ(prediction->seconds, 42);
}

}  // namespace
}  // namespace optrail::suites
