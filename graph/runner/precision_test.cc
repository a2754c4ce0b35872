#include "graph/runner/precision.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/onnx/import.h"
#include "graph/reference/reference.h"
#include "graph/runner/runner.h"
#include "ops/device/cpu/device.h"

namespace optrail::graph {
namespace {

// Relative to the largest value: bf16 has 8 bits, and layers add errors.
constexpr double kTolerance = 3e-2;

TensorType F32(const Dims& dims) { return {proto::ELEMENT_F32, dims}; }

int Count(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == op;
  return count;
}

TEST(Precision, ElementwiseChainsStayWide) {
  Graph graph;
  const int x = graph.AddInput("x", F32({4, 8}));
  const int w =
      graph.AddConstant("w", Array::Reals(proto::ELEMENT_F32, {8, 8},
                                          std::vector<double>(64, 3.4e38)));
  const int product = *graph.AddNode("p", "matmul", {x, w});
  const int third = graph.AddConstant(
      "third", Array::Reals(proto::ELEMENT_F32, {}, {1.0 / 3}));
  const int scaled = *graph.AddNode("scaled", "mul", {product, third});
  graph.outputs = {*graph.AddNode("y", "tanh", {scaled})};
  const auto half = ConvertFloats(graph, proto::ELEMENT_BF16);
  ASSERT_TRUE(half.ok()) << half.status();
  ASSERT_TRUE(Validate(*half).ok()) << Validate(*half);
  // The input's, the chain's first operand, and its result.
  EXPECT_EQ(Count(*half, "cast"), 3);
  EXPECT_EQ(half->type(half->inputs[0]).type, proto::ELEMENT_F32);
  EXPECT_EQ(half->type(half->outputs[0]).type, proto::ELEMENT_BF16);
  for (const Node& node : half->nodes) {
    const proto::ElementType type = half->type(node.outputs[0]).type;
    if (node.op == "matmul" || node.op == "mul") {
      EXPECT_EQ(type,
                node.op == "mul" ? proto::ELEMENT_F32 : proto::ELEMENT_BF16);
    }
    for (const int input : node.inputs) {
      const Value& value = half->values[input];
      if (value.constant == nullptr) continue;
      const Array array = ConstantArray(value.type, *value.constant);
      // A scalar keeps its digits; what is too large stays finite.
      if (node.op == "mul") {
        EXPECT_EQ(array.reals[0], float(1.0 / 3));
      } else {
        EXPECT_LT(array.reals[0], 3.4e38);
      }
    }
  }
}

TEST(Precision, RefusesOtherTypes) {
  EXPECT_EQ(ConvertFloats(Graph(), proto::ELEMENT_I8).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Precision, ModelsStayCloseToTheirReference) {
  const auto device = ops::MakeCpuDevice(1);
  ASSERT_TRUE(device.ok());
  for (const char* name : {"tiny_dlrm", "tiny_resnet_bn"}) {
    const auto imported = ImportOnnx(
        std::string("graph/testdata/") + name + ".onnx", ImportOptions());
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Graph& graph = imported->graph;
    const std::vector<Array> inputs = SeededInputs(graph, 7);
    const auto expected = RunReference(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    RunnerOptions options;
    options.type = proto::ELEMENT_BF16;
    const auto runner = Runner::Create(graph, **device, options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    ASSERT_TRUE((*runner)->SetInputs(inputs).ok());
    ASSERT_TRUE((*runner)->Run().ok());
    auto ours = (*runner)->Outputs();
    ASSERT_TRUE(ours.ok()) << ours.status();
    for (size_t i = 0; i < ours->size(); ++i) {
      EXPECT_EQ((*ours)[i].type.type, proto::ELEMENT_BF16);
      (*ours)[i].type = (*expected)[i].type;
      const Difference difference = Compare((*ours)[i], (*expected)[i]);
      EXPECT_EQ(difference.problem, "");
      EXPECT_LT(difference.relative, kTolerance) << name;
      EXPECT_GT(difference.relative, 1e-6) << name << " is not in bf16";
    }
  }
}

}  // namespace
}  // namespace optrail::graph
