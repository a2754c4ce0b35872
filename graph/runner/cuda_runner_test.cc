// Graphs on CUDA over a driver without a GPU
// (ops/device/cuda/testing/fake_driver.cc), whose kernels do nothing: what is
// compiled, captured and launched. NVRTC compiles the kernels; a machine
// without it says so.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "graph/onnx/import.h"
#include "graph/reference/reference.h"
#include "graph/runner/runner.h"
#include "ops/device/cuda/measured_gpu.h"
#include "ops/device/cuda/testing/fake_driver.h"

namespace optrail::graph {
namespace {

using ops::cuda::Driver;
using ops::cuda::MeasuredGpu;
using ops::cuda::Script;

constexpr char kFakeDriver[] = "ops/device/cuda/testing/libfake_cuda.so";

TensorType F32(const Dims& dims) { return {proto::ELEMENT_F32, dims}; }

class CudaRunnerTest : public testing::Test {
 protected:
  CudaRunnerTest()
      : driver_(Driver::Load(kFakeDriver)),
        gpu_(*MeasuredGpu::Make(*driver_)) {}

  // Null where there is no compiler.
  std::unique_ptr<Runner> Make(const Graph& graph,
                               proto::ElementType type = proto::ELEMENT_F32) {
    RunnerOptions options;
    options.type = type;
    auto runner = Runner::Create(graph, *gpu_, options);
    if (runner.ok()) return *std::move(runner);
    why_ = std::string(runner.status().message());
    if (why_.find("libnvrtc") == std::string::npos) ADD_FAILURE() << why_;
    return nullptr;
  }

  int Launches() {
    static void* const library = dlopen(kFakeDriver, RTLD_NOW);
    auto* const count =
        reinterpret_cast<int (*)(void*)>(dlsym(library, "FakeLaunches"));
    return count(gpu_->driver_stream());
  }

  // So far.
  int BytesRead() {
    static void* const library = dlopen(kFakeDriver, RTLD_NOW);
    return reinterpret_cast<int (*)()>(dlsym(library, "FakeBytesRead"))();
  }

  const absl::StatusOr<Driver> driver_;
  const std::unique_ptr<MeasuredGpu> gpu_;
  std::string why_;
};

#define OPTRAIL_RUNNER_OR_SKIP(name, ...)                 \
  const std::unique_ptr<Runner> name = Make(__VA_ARGS__); \
  if (name == nullptr) GTEST_SKIP() << why_

// A product, a sum and what only the reference has.
Graph Layers(bool with_reference) {
  Graph graph;
  const int x = graph.AddInput("x", F32({8, 64}));
  const int w = graph.AddInput("w", F32({64, 32}));
  int y = *graph.AddNode("product", "matmul", {x, w});
  if (with_reference) {
    const int row = graph.AddConstant(
        "row", Array::Integers(proto::ELEMENT_I64, {1, 1}, {3}));
    const int values = graph.AddConstant("values", Array::Zeros(F32({1, 32})));
    y = *graph.AddNode("written", "scatter_nd", {y, row, values},
                       {{"reduction", std::string()}});
  }
  y = *graph.AddNode("y", "tanh", {y});
  graph.outputs = {y};
  return graph;
}

TEST_F(CudaRunnerTest, LaunchesOneGraph) {
  const Graph graph = Layers(false);
  OPTRAIL_RUNNER_OR_SKIP(runner, graph);
  ASSERT_EQ(runner->steps().size(), 2);
  const int captured = Launches();
  ASSERT_TRUE(runner->SetInputs(SeededInputs(graph, 1)).ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(runner->Run().ok());
  EXPECT_EQ(Launches(), captured);
  ASSERT_TRUE(runner->RunStep(1).ok());
  EXPECT_EQ(Launches(), captured + 1);
  const auto outputs = runner->Outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].type, F32({8, 32}));
}

TEST_F(CudaRunnerTest, AnotherThreadAnswersWithTheOutputs) {
  const Graph graph = Layers(false);
  OPTRAIL_RUNNER_OR_SKIP(runner, graph);
  ASSERT_TRUE(runner->SetInputs(SeededInputs(graph, 1)).ok());
  std::thread([&] {
    ops::cuda::Context context = nullptr;
    ASSERT_EQ(driver_->CtxGetCurrent(&context), 0);
    ASSERT_EQ(context, nullptr);
    EXPECT_TRUE(runner->UseInThisThread().ok());
    ASSERT_EQ(driver_->CtxGetCurrent(&context), 0);
    EXPECT_NE(context, nullptr);
    EXPECT_TRUE(runner->Run().ok());
    EXPECT_TRUE(runner->BringOutputs().ok());
  }).join();
  const Script script("cuMemcpyDtoH=700");
  EXPECT_FALSE(runner->BringOutputs().ok());
}

TEST_F(CudaRunnerTest, ReadsADenseOutputAlone) {
  Graph graph = Layers(false);
  graph.outputs = {*graph.AddNode(
      "rows", "slice", {graph.outputs[0]},
      {{"starts", Dims{1, 0}}, {"steps", Dims{1, 1}}, {"dims", Dims{2, 32}}})};
  OPTRAIL_RUNNER_OR_SKIP(runner, graph);
  ASSERT_TRUE(runner->SetInputs(SeededInputs(graph, 1)).ok());
  ASSERT_TRUE(runner->Run().ok());
  constexpr int kBytes = 2 * 32 * sizeof(float);
  int before = BytesRead();
  EXPECT_TRUE(runner->BringOutputs().ok());
  EXPECT_EQ(BytesRead() - before, kBytes);
  before = BytesRead();
  const auto outputs = runner->Outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].type, F32({2, 32}));
  EXPECT_EQ(BytesRead() - before, kBytes);
}

TEST_F(CudaRunnerTest, ReferenceRunsBetweenTwoGraphs) {
  const Graph graph = Layers(true);
  OPTRAIL_RUNNER_OR_SKIP(runner, graph);
  ASSERT_EQ(runner->steps().size(), 3);
  EXPECT_EQ(runner->steps()[1].kernel, "reference");
  ASSERT_TRUE(runner->SetInputs(SeededInputs(graph, 1)).ok());
  const int captured = Launches();
  EXPECT_TRUE(runner->Run().ok());
  EXPECT_EQ(Launches(), captured);
}

TEST_F(CudaRunnerTest, SaysWhyOurOperatorsDoNot) {
  OPTRAIL_RUNNER_OR_SKIP(runner, Layers(false));
  EXPECT_EQ(runner->steps()[0].kernel, "generated");
  EXPECT_NE(runner->steps()[0].what.find("f32"), std::string::npos)
      << runner->steps()[0].what;
}

TEST_F(CudaRunnerTest, Bf16TakesOurOperators) {
  Graph graph = Layers(false);
  OPTRAIL_RUNNER_OR_SKIP(runner, graph, proto::ELEMENT_BF16);
  bool has_product = false;
  for (const RunnerStep& step : runner->steps()) {
    has_product |= step.kernel == "matmul";
  }
  EXPECT_TRUE(has_product);
  const auto outputs = runner->Outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].type.type, proto::ELEMENT_BF16);
}

TEST_F(CudaRunnerTest, FailsWhereTheGraphIsNotInstantiated) {
  const Script script("cuGraphInstantiate=2");
  const auto runner = Runner::Create(Layers(false), *gpu_);
  ASSERT_FALSE(runner.ok());
  if (std::string(runner.status().message()).find("libnvrtc") !=
      std::string::npos) {
    GTEST_SKIP() << runner.status();
  }
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kResourceExhausted)
      << runner.status();
}

// Bags of embeddings, as a recommender has them.
TEST_F(CudaRunnerTest, IndependentLoopsAreOneLaunch) {
  Graph graph;
  std::vector<int> bags;
  for (int i = 0; i < 3; ++i) {
    const int table = graph.AddInput("table", F32({50, 16}));
    const int rows = graph.AddInput("rows", {proto::ELEMENT_I64, {8, 4}});
    const int read =
        *graph.AddNode("read", "gather", {table, rows}, {{"axis", int64_t{0}}});
    bags.push_back(
        *graph.AddNode("bag", "reduce_sum", {read}, {{"axes", Dims{1}}}));
  }
  int y = *graph.AddNode("all", "concat", bags, {{"axis", int64_t{1}}});
  y = *graph.AddNode("y", "tanh", {y});
  graph.outputs = {y};
  OPTRAIL_RUNNER_OR_SKIP(runner, graph);
  ASSERT_EQ(runner->steps().size(), 3);
  EXPECT_EQ(runner->steps()[0].nodes, 6);
  EXPECT_TRUE(runner->Run().ok());
}

// The exported models compile in both types, with nothing left to the host.
TEST_F(CudaRunnerTest, CompilesWholeModels) {
  for (const char* name : {"tiny_dlrm", "tiny_mobilenet", "tiny_resnet_bn"}) {
    const auto imported = ImportOnnx(
        std::string("graph/testdata/") + name + ".onnx", ImportOptions());
    ASSERT_TRUE(imported.ok()) << imported.status();
    for (const auto type : {proto::ELEMENT_F32, proto::ELEMENT_BF16}) {
      OPTRAIL_RUNNER_OR_SKIP(runner, imported->graph, type);
      for (const RunnerStep& step : runner->steps()) {
        EXPECT_NE(step.kernel, "reference")
            << name << ": " << step.name << " " << step.what;
      }
      ASSERT_TRUE(runner->SetInputs(SeededInputs(imported->graph, 1)).ok());
      EXPECT_TRUE(runner->Run().ok());
    }
  }
}

}  // namespace
}  // namespace optrail::graph
