// The evidence of planted kernels that needs no clock: pages visited and facts
// of the code.

#include <set>
#include <string>
#include <vector>

#include "diagnosis/evaluation/planted_cases.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/jit_backend.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/nvrtc.h"
#include "suites/worker/worker.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

suites::Evaluation Profiled(
    const std::string& backend, const std::string& config,
    const std::string& shape = "rows=128,cols=1024/f32") {
  proto::Task task;
  task.set_operator_name("planted");
  task.set_device_kind(proto::CPU);
  task.set_backend(backend);
  *task.mutable_shape() = *tuning::ParseShape(shape);
  task.set_threads(1);
  task.set_cache_mode(proto::HOT);
  suites::WorkerOptions options;
  options.config_deadline = absl::Minutes(1);
  suites::WorkerEvaluator evaluator(task, options);
  suites::EvaluationOptions evaluation;
  std::vector<std::string> facts;
  if (!backend.empty()) facts.push_back(ops::kLoopFactsOption);
  return evaluator.Profile(*tuning::ParseConfig(config), facts, evaluation);
}

double Metric(const suites::Evaluation& evaluation, const std::string& name) {
  if (evaluation.trial().measurements().empty()) return -1;
  for (const proto::MetricSamples& metric :
       evaluation.trial().measurements(0).metrics()) {
    if (metric.metric() == name) return metric.values(0);
  }
  return -1;
}

double Fact(const suites::Evaluation& evaluation, const std::string& name) {
  for (const proto::Fact& fact : evaluation.trial().facts()) {
    if (fact.name() == name) return static_cast<double>(fact.value());
  }
  return -1;
}

TEST(PlantedTest, StridesAndPassesShowInThePagesVisited) {
  const auto healthy = Profiled("native", "cause=healthy,amount=4");
  ASSERT_EQ(healthy.trial().outcome(), proto::OK) << healthy.trial().detail();
  EXPECT_LE(Metric(healthy, "page_visits:0"), 129);
  const auto strided = Profiled("native", "cause=strided,amount=4");
  EXPECT_GT(Metric(strided, "page_visits:0"), 20 * 128);
  EXPECT_GT(Metric(strided, "regular_visits:0"), 10 * 128);
  const auto passes = Profiled("native", "cause=passes,amount=4");
  EXPECT_GE(Metric(passes, "page_visits:0"), 5 * 128);
  EXPECT_LE(Metric(passes, "page_visits:0"), 6 * 128);
  const auto copies = Profiled("", "cause=copies");
  EXPECT_GE(Metric(copies, "page_visits:workspace"), 128);
}

TEST(PlantedTest, TheKernelAndItsFaultsAreCounted) {
  const auto faults = Profiled("native", "cause=page_faults,amount=4");
  ASSERT_EQ(faults.trial().outcome(), proto::OK) << faults.trial().detail();
  EXPECT_GE(Metric(faults, "page_faults"), 1);
  const auto waiting = Profiled("native", "cause=waiting,amount=4");
  EXPECT_GE(Metric(waiting, "switches"), .9);
}

TEST(PlantedTest, TheMainLoopShowsInTheFacts) {
  const auto scalar = Profiled("native", "cause=scalar,amount=4");
  ASSERT_EQ(scalar.trial().outcome(), proto::OK) << scalar.trial().detail();
  if (Fact(scalar, "loop_instructions") < 0) {
    GTEST_SKIP() << "no objdump, or another processor";
  }
  EXPECT_EQ(Fact(scalar, "loop_vector_fp"), 0);
  EXPECT_GT(Fact(scalar, "loop_scalar_fp"), 4);
  const auto slow = Profiled("native", "cause=slow,amount=4");
  EXPECT_GE(Fact(slow, "loop_slow"), 1);
  const auto contended = Profiled("native", "cause=contended_lines,amount=4");
  EXPECT_GE(Fact(contended, "loop_locked"), 1);
  const auto conversions = Profiled("native", "cause=conversions,amount=4");
  EXPECT_GE(Fact(conversions, "loop_conversions"), 1);
}

// Rows that fill no vector: by one vector each, and by vectors over all rows.
TEST(PlantedTest, KernelsOfShortRowsComputeTheSame) {
  for (const char* config :
       {"cause=unused_lanes,amount=4", "cause=healthy,amount=4"}) {
    for (const char* shape :
         {"rows=61,cols=3/depth=9/f32", "rows=40,cols=16/depth=9/f32"}) {
      const auto evaluation = Profiled("native", config, shape);
      EXPECT_EQ(evaluation.trial().outcome(), proto::OK)
          << config << " " << shape << ": " << evaluation.trial().detail();
    }
  }
}

TEST(PlantedTest, AKernelOfWholeVectorsRefusesOtherRows) {
  proto::Hardware hardware;
  hardware.set_device_kind(proto::CPU);
  hardware.set_cores(1);
  suites::TaskSelection selection;
  selection.op_regex = "planted";
  selection.shape_regex = "rows=64,cols=5/f32";
  selection.backend = "native";
  selection.with_test_only = true;
  const auto tasks = suites::SelectTasks(selection, hardware);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  const auto space = suites::BindTask((*tasks)[0], hardware);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_TRUE(
      space->Validate(*tuning::ParseConfig("cause=unused_lanes,amount=4"))
          .ok());
  EXPECT_FALSE(
      space->Validate(*tuning::ParseConfig("cause=spills,amount=4")).ok());
}

// A wrong kernel would be diagnosed as well as a right one.
void ExpectSampleComputes(const std::vector<PlantedCase>& cases,
                          const std::string& shape) {
  // Each is compiled by itself; the score checks the others.
  const std::set<std::string> sample = {"copies", "gather", "healthy_deep",
                                        "strided_l3"};
  for (const PlantedCase& one : cases) {
    if (sample.count(one.name) == 0) continue;
    proto::Task task;
    task.set_operator_name(one.op);
    task.set_device_kind(proto::CPU);
    task.set_backend(one.backend);
    *task.mutable_shape() = *tuning::ParseShape(shape);
    task.set_threads(one.threads);
    task.set_cache_mode(proto::HOT);
    suites::WorkerOptions options;
    options.config_deadline = absl::Minutes(1);
    suites::WorkerEvaluator evaluator(task, options);
    const suites::Evaluation evaluation =
        evaluator.Profile(*tuning::ParseConfig(one.config), {}, {});
    EXPECT_EQ(evaluation.trial().outcome(), proto::OK)
        << one.name << ": " << evaluation.trial().detail();
  }
}

TEST(HeldBackTest, TheKernelsComputeTheFilter) {
  ExpectSampleComputes(DrawHeldBackCases(1, 2), "rows=40,cols=192/taps=3/f32");
}

TEST(ChannelMixTest, TheKernelsComputeTheProduct) {
  ExpectSampleComputes(DrawChannelMixCases(1, 2),
                       "rows=10,cols=192/channels=6/f32");
}

// The GPU runs them elsewhere; its compiler needs none.
TEST(PlantedCudaTest, EveryKernelCompiles) {
  const auto nvrtc = ops::cuda::Nvrtc::Get();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const ops::OperatorEntry& planted = *ops::Registry::Get().Find("planted");
  const auto backend = planted.FindBackend(proto::CUDA, "");
  ASSERT_TRUE(backend.ok()) << backend.status();
  ops::Target target;
  target.kind = proto::CUDA;
  target.hardware = (*ops::FindDeviceType(proto::CUDA))->Declared();
  std::set<std::string> compiled;
  for (const PlantedCase& one : DrawCudaCases(1)) {
    if (one.op != "planted" || !compiled.insert(one.name).second) continue;
    for (const std::string& config : {one.config, one.unplanted}) {
      if (config.empty()) continue;
      const auto recipe =
          (*backend)->Describe({*tuning::ParseShape(one.shape),
                                *tuning::ParseConfig(config), target});
      ASSERT_TRUE(recipe.ok()) << one.name << ": " << recipe.status();
      const auto artifact = (*backend)->Compile(*recipe);
      EXPECT_TRUE(artifact.ok()) << one.name << ": " << artifact.status();
    }
  }
  EXPECT_EQ(compiled.count("unused_lanes"), 1u);
  EXPECT_GT(compiled.size(), 15u);
}

TEST(DrawCasesTest, EverySetHasItsOwnOperatorAndNamesCasesOnce) {
  std::set<std::string> operators;
  for (const CaseSet& set : CaseSets()) {
    std::set<std::string> names;
    int planted = 0;
    for (const PlantedCase& one : set.draw(1, 2)) {
      EXPECT_TRUE(names.insert(one.name).second) << set.name << one.name;
      planted += !one.expected.empty();
      if (one.expected.empty() && one.op != set.name) continue;  // shipped
      EXPECT_EQ(one.op, set.name);
    }
    EXPECT_GE(planted, 22) << set.name;
    EXPECT_GE(names.size() - planted, 6u) << set.name;
    EXPECT_TRUE(operators.insert(set.name).second);
  }
}

TEST(DrawCasesTest, ASeedDrawsTheSameCasesAndAnotherOneOthers) {
  const auto one = DrawCases(1, 2), again = DrawCases(1, 2),
             other = DrawCases(2, 2);
  ASSERT_EQ(one.size(), other.size());
  int different = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].shape, again[i].shape);
    different += one[i].shape != other[i].shape;
  }
  EXPECT_GT(different, 20);
  EXPECT_LT(DrawCases(1, 1).size(), one.size());
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
