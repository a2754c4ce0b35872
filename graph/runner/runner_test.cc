#include "graph/runner/runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "graph/onnx/import.h"
#include "graph/reference/npz.h"
#include "graph/reference/reference.h"
#include "ops/device/cpu/device.h"

namespace optrail::graph {
namespace {

TensorType F32(const Dims& dims) { return {proto::ELEMENT_F32, dims}; }

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : device_(*ops::MakeCpuDevice(2)) {}

  absl::StatusOr<std::vector<Array>> RunOnDevice(
      const Graph& graph, const std::vector<Array>& inputs) {
    auto runner = Runner::Create(graph, *device_);
    if (!runner.ok()) return runner.status();
    for (const RunnerStep& step : (*runner)->steps()) {
      ++kernels_[step.kernel];
    }
    // Twice, so that what a call leaves behind shows.
    for (int i = 0; i < 2; ++i) {
      absl::Status status = (*runner)->SetInputs(inputs);
      if (status.ok()) status = (*runner)->Run();
      if (!status.ok()) return status;
    }
    return (*runner)->Outputs();
  }

  // Runs with random inputs and compares with the reference.
  void ExpectSame(const Graph& graph) {
    ASSERT_TRUE(Validate(graph).ok()) << Validate(graph);
    const std::vector<int64_t> limits = IndexLimits(graph);
    std::vector<Array> inputs;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      inputs.push_back(
          RandomInput(graph.type(graph.inputs[i]), i + 1, limits[i]));
    }
    const auto ours = RunOnDevice(graph, inputs);
    ASSERT_TRUE(ours.ok()) << ours.status();
    const auto expected = RunReference(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t i = 0; i < ours->size(); ++i) {
      const Difference difference = Compare((*ours)[i], (*expected)[i]);
      EXPECT_EQ(difference.problem, "");
      EXPECT_LT(difference.relative, 1e-5)
          << graph.values[graph.outputs[i]].name << " at " << difference.worst
          << ": " << (*ours)[i].At(difference.worst) << " for "
          << (*expected)[i].At(difference.worst);
    }
  }

  const std::unique_ptr<ops::CpuDevice> device_;
  std::map<std::string, int> kernels_;
};

TEST_F(RunnerTest, ElementwiseChainsAreOneStep) {
  Graph graph;
  const int x = graph.AddInput("x", F32({33, 128}));
  const int b = graph.AddInput("b", F32({128}));
  int y = *graph.AddNode("sum", "add", {x, b});
  const int gate = *graph.AddNode("gate", "sigmoid", {y});
  y = *graph.AddNode("swish", "mul", {y, gate});
  for (const char* op : {"tanh", "exp", "erf", "neg", "relu", "abs"}) {
    y = *graph.AddNode(op, op, {y});
  }
  graph.outputs = {y};
  ExpectSame(graph);
  EXPECT_EQ(kernels_, (std::map<std::string, int>{{"generated", 1}}));
}

TEST_F(RunnerTest, ViewsAreReadInPlace) {
  Graph graph;
  const int x = graph.AddInput("x", F32({4, 6, 10}));
  const int turned =
      *graph.AddNode("turned", "transpose", {x}, {{"perm", Dims{2, 0, 1}}});
  const int part = *graph.AddNode("part", "slice", {turned},
                                  {{"starts", Dims{8, 1, 0}},
                                   {"steps", Dims{-2, 1, 3}},
                                   {"dims", Dims{4, 2, 2}}});
  const int wide =
      *graph.AddNode("wide", "reshape", {part}, {{"dims", Dims{4, 1, 2, 2}}});
  const int more =
      *graph.AddNode("more", "expand", {wide}, {{"dims", Dims{4, 3, 2, 2}}});
  graph.outputs = {*graph.AddNode("y", "neg", {more}), turned};
  ExpectSame(graph);
  EXPECT_EQ(kernels_, (std::map<std::string, int>{{"generated", 1}}));
}

// One graph, since each takes a run of the compiler.
TEST_F(RunnerTest, ReductionsAlongAnyAxes) {
  Graph graph;
  const int x = graph.AddInput("x", F32({3, 37, 70}));
  for (const std::string op : {"reduce_sum", "reduce_mean", "reduce_max",
                               "reduce_min", "reduce_prod"}) {
    for (const Dims& axes :
         {Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{0, 1, 2}, Dims{}}) {
      // Products of many leave the range of f32.
      if (op == "reduce_prod" && axes != Dims{0}) continue;
      for (const int64_t keepdims : {0, 1}) {
        // All of one sign: sums of both signs cancel, and their relative
        // error says nothing about the kernel.
        const int scaled = *graph.AddNode("scaled", "sigmoid", {x});
        graph.outputs.push_back(*graph.AddNode(
            "y", op, {scaled}, {{"axes", axes}, {"keepdims", keepdims}}));
      }
    }
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_["reference"], 0);
}

TEST_F(RunnerTest, IntegersAndBooleans) {
  Graph graph;
  const TensorType i64{proto::ELEMENT_I64, {50}};
  const int a = graph.AddInput("a", i64), b = graph.AddInput("b", i64);
  const int less = *graph.AddNode("less", "less", {a, b});
  const int chosen = *graph.AddNode("chosen", "where", {less, a, b});
  const int divided = *graph.AddNode("divided", "div", {chosen, b});
  const int8_t f32 = proto::ELEMENT_F32;
  graph.outputs = {divided, less,
                   *graph.AddNode("real", "cast", {chosen},
                                  {{"to", static_cast<int64_t>(f32)}})};
  ExpectSame(graph);
}

TEST_F(RunnerTest, ConvolutionsOfEveryKind) {
  struct Case {
    int64_t c, k, group, stride, begin, end, dilation;
  };
  Graph graph;
  for (const Case& t :
       {Case{16, 32, 1, 1, 1, 1, 1}, Case{16, 16, 16, 2, 1, 1, 1},
        Case{16, 32, 4, 1, 1, 1, 1}, Case{8, 8, 1, 1, 2, 2, 2},
        Case{8, 8, 1, 2, 0, 1, 1}, Case{3, 5, 1, 2, 1, 1, 1}}) {
    const int x = graph.AddInput("x", F32({2, t.c, 13, 17}));
    const int w = graph.AddConstant("w", F32({t.k, t.c / t.group, 3, 3}),
                                    Constant{nullptr, 3, 0.1});
    const int conv = *graph.AddNode("conv", "conv", {x, w},
                                    {{"strides", Dims(2, t.stride)},
                                     {"begin", Dims(2, t.begin)},
                                     {"end", Dims(2, t.end)},
                                     {"dilations", Dims(2, t.dilation)},
                                     {"group", t.group}});
    const std::string name =
        absl::StrCat("conv ", t.c, " ", t.k, " ", t.group, " ", t.stride, " ",
                     t.begin, t.end, " ", t.dilation);
    graph.outputs.push_back(*graph.AddNode(name, "relu", {conv}));
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_["reference"], 0);
}

// Heads as models have them: parts of one product, read in place.
TEST_F(RunnerTest, AttentionOfTransposedHeads) {
  Graph graph;
  const auto node = [&](const char* op, std::vector<int> inputs,
                        Attributes attributes = {}) {
    return *graph.AddNode(op, op, std::move(inputs), std::move(attributes));
  };
  const int x = graph.AddInput("x", F32({2, 20, 96}));
  const auto heads = [&](int64_t begin, Dims perm) {
    const int part = node("slice", {x},
                          {{"starts", Dims{0, 0, begin}},
                           {"steps", Dims{1, 1, 1}},
                           {"dims", Dims{2, 20, 32}}});
    const int split = node("reshape", {part}, {{"dims", Dims{2, 20, 4, 8}}});
    return node("transpose", {split}, {{"perm", perm}});
  };
  Array mask = Array::Zeros(F32({20, 20}));
  for (int64_t i = 0; i < 400; ++i) {
    if (i % 20 > i / 20) mask.reals[i] = -1e10;
  }
  const int scale = graph.AddConstant(
      "s", Array::Reals(proto::ELEMENT_F32, {}, {1 / std::sqrt(8.0)}));
  for (const bool causal : {false, true}) {
    int scores =
        node("matmul", {heads(0, {0, 2, 1, 3}), heads(32, {0, 2, 3, 1})});
    scores = node("mul", {scores, scale});
    if (causal) scores = node("add", {scores, graph.AddConstant("m", mask)});
    const int weights = node("softmax", {scores}, {{"axis", int64_t{3}}});
    const int y = node("matmul", {weights, heads(64, {0, 2, 1, 3})});
    const int back = node("transpose", {y}, {{"perm", Dims{0, 2, 1, 3}}});
    graph.outputs.push_back(
        node("reshape", {back}, {{"dims", Dims{2, 20, 32}}}));
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_["attention"], 2);
  EXPECT_EQ(kernels_["reference"], 0);
}

TEST_F(RunnerTest, ProductsWithConstantsKeepThemPacked) {
  Graph graph;
  const int x = graph.AddInput("x", F32({3, 10, 40}));
  const int w =
      graph.AddConstant("w", F32({40, 70}), Constant{nullptr, 3, 0.1});
  const int other = graph.AddInput("other", F32({70, 9}));
  const int y = *graph.AddNode("y", "matmul", {x, w});
  graph.outputs = {*graph.AddNode("z", "matmul", {y, other})};
  ExpectSame(graph);
  EXPECT_EQ(kernels_,
            (std::map<std::string, int>{{"linear", 1}, {"matmul", 1}}));
}

TEST_F(RunnerTest, WeightsThatAreComputedArePackedWithEachCall) {
  Graph graph;
  const int x = graph.AddInput("x", F32({1, 8, 9, 9}));
  const int w = graph.AddInput("w", F32({16, 8, 3, 3}));
  const int doubled = *graph.AddNode("doubled", "add", {w, w});
  graph.outputs = {*graph.AddNode("conv", "conv", {x, doubled},
                                  {{"strides", Dims{1, 1}},
                                   {"begin", Dims{1, 1}},
                                   {"end", Dims{1, 1}},
                                   {"dilations", Dims{1, 1}},
                                   {"group", int64_t{1}}})};
  const int a = graph.AddInput("a", F32({20, 30}));
  const int b = graph.AddInput("b", F32({30, 40}));
  const int bias = graph.AddInput("bias", F32({40}));
  const int product = *graph.AddNode("product", "matmul", {a, b});
  graph.outputs.push_back(*graph.AddNode("layer", "add", {product, bias}));
  ExpectSame(graph);
  EXPECT_EQ(kernels_["linear"] + kernels_["conv2d"], 2);
}

TEST_F(RunnerTest, BagsOfGatheredRowsAreSummed) {
  Graph graph;
  const int indices = graph.AddInput("i", {proto::ELEMENT_I64, {13, 6}});
  for (const int64_t cols : {5, 64, 700}) {
    const int table =
        graph.AddConstant("t", F32({50, cols}), Constant{nullptr, 7, 1});
    const int rows = *graph.AddNode("rows", "gather", {table, indices},
                                    {{"axis", int64_t{0}}});
    graph.outputs.push_back(
        *graph.AddNode("sum", "reduce_sum", {rows},
                       {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}));
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_, (std::map<std::string, int>{{"generated", 3}}));
}

TEST_F(RunnerTest, ConvolutionsWithScaleShiftAndRelu) {
  Graph graph;
  const int x = graph.AddInput("x", F32({1, 16, 14, 14}));
  const auto constant = [&](const Dims& dims, uint64_t seed) {
    return graph.AddConstant("c", F32(dims), Constant{nullptr, seed, 0.2});
  };
  for (const int64_t stride : {1, 2}) {
    int y = *graph.AddNode("conv", "conv", {x, constant({24, 16, 3, 3}, 1)},
                           {{"strides", Dims{stride, stride}},
                            {"begin", Dims{1, 1}},
                            {"end", Dims{1, 1}},
                            {"dilations", Dims{1, 1}},
                            {"group", int64_t{1}}});
    y = *graph.AddNode("scaled", "mul", {y, constant({1, 24, 1, 1}, 2)});
    y = *graph.AddNode("shifted", "add", {y, constant({1, 24, 1, 1}, 3)});
    graph.outputs.push_back(*graph.AddNode("y", "relu", {y}));
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_["conv_bn_relu"], 2);
  EXPECT_EQ(kernels_["reference"], 0);
}

TEST_F(RunnerTest, NormsOfSumsKeepTheSumWhereItIsRead) {
  for (const char* op : {"add_layer_norm", "add_rms_norm"}) {
    for (const bool is_read : {false, true}) {
      Graph graph;
      const int x = graph.AddInput("x", F32({3, 7, 37}));
      const int r = graph.AddInput("r", F32({3, 7, 37}));
      std::vector<int> inputs = {x, r};
      for (uint64_t i = 0; i < (op[4] == 'l' ? 2 : 1); ++i) {
        inputs.push_back(
            graph.AddConstant("w", F32({37}), Constant{nullptr, i, 0.5}));
      }
      const int y = *graph.AddNode("norm", op, inputs,
                                   {{"axis", int64_t{2}}, {"epsilon", 1e-6}});
      graph.outputs = {y};
      if (is_read) graph.outputs.push_back(y + 1);
      ExpectSame(graph);
    }
  }
  EXPECT_EQ(kernels_, (std::map<std::string, int>{{"generated", 4}}));
}

TEST_F(RunnerTest, LayersOfOneFactorRunAsOne) {
  Graph graph;
  const int x = graph.AddInput("x", F32({2, 6, 16}));
  for (const int64_t size : {16, 8, 8}) {
    const int w =
        graph.AddConstant("w", F32({16, size}), Constant{nullptr, 3, 0.3});
    const int b = graph.AddConstant("b", F32({size}), Constant{nullptr, 4, 1});
    const int product = *graph.AddNode("product", "matmul", {x, w});
    const int sum = *graph.AddNode("sum", "add", {product, b});
    const int heads = *graph.AddNode("heads", "reshape", {sum},
                                     {{"dims", Dims{2, 6, size / 4, 4}}});
    graph.outputs.push_back(*graph.AddNode("turned", "transpose", {heads},
                                           {{"perm", Dims{0, 2, 1, 3}}}));
  }
  ExpectSame(graph);
  EXPECT_EQ(kernels_["linear"], 1);
}

TEST_F(RunnerTest, GraphsWithoutAPatternCompileFewKernels) {
  // Each chain of operators is another one.
  Graph graph;
  const int x = graph.AddInput("x", F32({4, 8}));
  const std::vector<std::string> ops = {"relu", "tanh", "neg", "abs"};
  for (int chain = 0; chain < 400; ++chain) {
    int y = x;
    for (int i = 0; i < 5; ++i) {
      const std::string& op = ops[(chain >> (2 * i)) % 4];
      y = *graph.AddNode(op, op, {y});
    }
    graph.outputs.push_back(y);
  }
  const auto program = Lower(graph);
  ASSERT_TRUE(program.ok());
  std::set<std::string> sources;
  for (const Step& step : program->steps) sources.insert(step.code.source);
  EXPECT_EQ(sources.size(), 4);
  ExpectSame(graph);
}

TEST_F(RunnerTest, ResultsThatNoMachineHoldsAreRefused) {
  const int64_t size = int64_t{1} << 19;
  for (const bool by_reference : {false, true}) {
    Graph graph;
    const int x = graph.AddInput("x", F32({1, 1}));
    int y = *graph.AddNode("wide", "expand", {x}, {{"dims", Dims{size, size}}});
    if (by_reference) {
      y = *graph.AddNode("running", "cumsum", {y}, {{"axis", int64_t{1}}});
    }
    graph.outputs = {y};
    const Array one = Array::Reals(proto::ELEMENT_F32, {1, 1}, {1});
    EXPECT_EQ(RunOnDevice(graph, {one}).status().code(),
              absl::StatusCode::kResourceExhausted);
    const absl::Status status = RunReference(graph, {one}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(status.message().find("node \"wide\" (expand)"),
              std::string::npos)
        << status;
  }
}

// Windows in three dimensions.
Attributes Cubes() {
  const Dims ones(3, 1), none(3, 0);
  return {{"kernel", Dims(3, 2)},
          {"strides", ones},
          {"begin", none},
          {"end", none},
          {"dilations", ones}};
}

TEST_F(RunnerTest, WhatHasNoKernelIsComputedByTheReference) {
  Graph graph;
  const int x = graph.AddInput("x", F32({2, 2, 3, 3, 3}));
  const int y = *graph.AddNode("y", "max_pool", {x}, Cubes());
  graph.outputs = {*graph.AddNode("z", "neg", {y})};
  ExpectSame(graph);
  EXPECT_EQ(kernels_["reference"], 1);
}

class TinyModelRunTest : public RunnerTest,
                         public testing::WithParamInterface<const char*> {};

TEST_P(TinyModelRunTest, MatchesOtherFrameworks) {
  const std::string path = absl::StrCat("graph/testdata/", GetParam());
  const auto imported = ImportOnnx(absl::StrCat(path, ".onnx"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto arrays = ReadNpz(absl::StrCat(path, ".npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  std::vector<Array> inputs;
  for (const int input : imported->graph.inputs) {
    inputs.push_back(arrays->at(imported->graph.values[input].name));
  }
  const auto ours = RunOnDevice(imported->graph, inputs);
  ASSERT_TRUE(ours.ok()) << ours.status();
  const Difference difference = Compare((*ours)[0], arrays->at("output"));
  EXPECT_EQ(difference.problem, "");
  EXPECT_LT(difference.relative, 1e-4);
  EXPECT_EQ(kernels_["reference"], 0);
}

INSTANTIATE_TEST_SUITE_P(Exported, TinyModelRunTest,
                         testing::Values("tiny_dlrm", "tiny_mobilenet",
                                         "tiny_resnet_bn"));

}  // namespace
}  // namespace optrail::graph
