// The workload of docs/guide/diagnose.md and its slow kernel: the result is
// right, and what needs no clock names the cause.

#include <string>

#include "diagnosis/classes.h"
#include "diagnosis/derived.h"
#include "diagnosis/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/worker/worker.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] = "diagnosis/example/bert_step.workload.textproto";

proto::Hardware TwoCores() {
  proto::Hardware hardware;
  hardware.set_id("test-2c");
  hardware.set_device_kind(proto::CPU);
  hardware.set_cores(2);
  return hardware;
}

std::vector<suites::TaskEntry> Tasks(const std::string& backend) {
  suites::TaskSelection selection;
  selection.workload = kWorkload;
  selection.backend = backend;
  const auto tasks = suites::SelectTasks(selection, TwoCores());
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  return tasks.ok() ? *tasks : std::vector<suites::TaskEntry>();
}

TEST(BertStepTest, OneOperatorIsComputedByANamedBackend) {
  int named = 0;
  const auto tasks = Tasks("layer_norm_backward:naive");
  EXPECT_GE(tasks.size(), 15);
  for (const suites::TaskEntry& task : tasks) {
    const bool is_slow = task.entry->op->name() == "layer_norm_backward";
    EXPECT_EQ(task.task.backend(), is_slow ? "naive" : "");
    named += is_slow;
  }
  EXPECT_EQ(named, 1);
}

TEST(BertStepTest, ANameThatTheOperatorLacksIsAnError) {
  const auto refusal = [](const char* backend) {
    suites::TaskSelection selection;
    selection.workload = kWorkload;
    selection.backend = backend;
    return std::string(
        suites::SelectTasks(selection, TwoCores()).status().message());
  };
  EXPECT_THAT(refusal("layer_norm_backward:nive"),
              HasSubstr("has no backend nive"));
  EXPECT_THAT(refusal("layr_norm:naive"), HasSubstr("layr_norm"));
}

TEST(BertStepTest, AmongAllBackendsTheSlowOneIsLeftOut) {
  for (const suites::TaskEntry& task : Tasks("all")) {
    EXPECT_NE(task.task.backend(), "naive");
  }
}

TEST(BertStepTest, TheSlowKernelIsRightAndWalksAcrossTheLayout) {
  proto::Task task;
  task.set_operator_name("layer_norm_backward");
  task.set_device_kind(proto::CPU);
  task.set_backend("naive");
  *task.mutable_shape() = *tuning::ParseShape("rows=96,cols=1024/f32");
  task.set_threads(1);
  task.set_cache_mode(proto::HOT);
  suites::WorkerOptions options;
  options.config_deadline = absl::Minutes(1);
  suites::WorkerEvaluator evaluator(task, options);
  // Profiling checks the result, too.
  const suites::Evaluation profile = evaluator.Profile({}, {}, {});
  ASSERT_EQ(profile.trial().outcome(), proto::OK) << profile.trial().detail();
  ASSERT_TRUE(profile.trial().measurements_size() > 0);
  // Experiments would tell this of operands that take most of the time.
  Numbers numbers;
  numbers.Set("memory_gain", .8, "assumed");
  for (const proto::MetricSamples& metric :
       profile.trial().measurements(0).metrics()) {
    numbers.Set(metric.metric(), metric.values(0), "observed calls");
  }
  AddDerived(TwoCores(), /*threads=*/1, &numbers);
  const auto causes = Judge(numbers);
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].chain().rbegin()->class_name(), "strided");
}

}  // namespace
}  // namespace optrail::diagnosis

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
