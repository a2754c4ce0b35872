#include "graph/ir/graph.h"

#include <gtest/gtest.h>

#include "graph/ir/elementwise.h"
#include "graph/ir/graph_text.h"

namespace optrail::graph {
namespace {

TensorType F32(const Dims& dims) { return {proto::ELEMENT_F32, dims}; }

// y = relu(x times w)
Graph Layer() {
  Graph graph;
  graph.name = "layer";
  const int x = graph.AddInput("x", F32({2, 3}));
  const int w = graph.AddConstant("w", Array::Zeros(F32({3, 4})));
  const int product = *graph.AddNode("product", "matmul", {x, w});
  graph.outputs = {*graph.AddNode("y", "relu", {product})};
  return graph;
}

TEST(GraphTest, TypesFollowFromInputs) {
  const Graph graph = Layer();
  EXPECT_TRUE(Validate(graph).ok()) << Validate(graph);
  EXPECT_EQ(graph.type(graph.outputs[0]), F32({2, 4}));
  EXPECT_EQ(GraphText(graph),
            "graph layer\n"
            "input x f32[2,3]\n"
            "product f32[2,4] = matmul(x f32[2,3], w f32[3,4] (constant))\n"
            "y f32[2,4] = relu(product f32[2,4])\n"
            "output y f32[2,4]\n");
}

TEST(GraphTest, WhatAnOperatorDoesNotTakeIsRefused) {
  Graph graph;
  const int x = graph.AddInput("x", F32({2, 3}));
  const int i = graph.AddInput("i", {proto::ELEMENT_I64, {2, 3}});
  EXPECT_FALSE(graph.AddNode("a", "matmul", {x, x}).ok());
  EXPECT_FALSE(graph.AddNode("a", "add", {x, i}).ok());
  EXPECT_FALSE(graph.AddNode("a", "add", {x}).ok());
  EXPECT_FALSE(graph.AddNode("a", "add", {x, -1}).ok());
  EXPECT_FALSE(graph.AddNode("a", "erf", {i}).ok());
  EXPECT_FALSE(graph.AddNode("a", "unknown", {x}).ok());
  EXPECT_FALSE(graph.AddNode("a", "reshape", {x}, {{"dims", Dims{5}}}).ok());
  EXPECT_FALSE(graph.AddNode("a", "softmax", {x}, {{"axis", int64_t{2}}}).ok());
  EXPECT_TRUE(graph.nodes.empty());
}

TEST(GraphTest, ValidateNamesTheNode) {
  Graph wrong_type = Layer();
  wrong_type.values[wrong_type.outputs[0]].type = F32({4, 2});
  EXPECT_NE(Validate(wrong_type).message().find("node \"y\" (relu)"),
            std::string::npos)
      << Validate(wrong_type);
  Graph backwards = Layer();
  std::swap(backwards.nodes[0], backwards.nodes[1]);
  EXPECT_NE(Validate(backwards).message().find("reads \"product\""),
            std::string::npos)
      << Validate(backwards);
  Graph outside = Layer();
  outside.nodes[0].inputs[0] = 99;
  EXPECT_FALSE(Validate(outside).ok());
  Graph no_output = Layer();
  no_output.outputs.push_back(1000);
  EXPECT_FALSE(Validate(no_output).ok());
  Graph short_constant = Layer();
  short_constant.values[1].constant = std::make_shared<Constant>(
      Constant{std::make_shared<const std::string>("four")});
  EXPECT_FALSE(Validate(short_constant).ok());
}

TEST(GraphTest, UnusedNodesGoAndInputsStay) {
  Graph graph = Layer();
  const int spare = graph.AddInput("spare", F32({1}));
  ASSERT_TRUE(graph.AddNode("waste", "neg", {spare}).ok());
  const Graph less = WithoutUnused(graph);
  EXPECT_TRUE(Validate(less).ok()) << Validate(less);
  EXPECT_EQ(less.nodes.size(), 2);
  EXPECT_EQ(less.inputs.size(), 2);
}

TEST(GraphTest, NamesThatHoldAnythingStayWithinTheirQuotes) {
  Graph graph;
  const int x = graph.AddInput("\"]; evil [label=\"\xff\n", F32({1}));
  graph.outputs = {*graph.AddNode("y", "relu", {x})};
  const std::string dot = GraphDot(graph);
  EXPECT_EQ(dot.find("\"]; evil"), dot.find("\\\"]; evil") + 1);
  EXPECT_EQ(GraphProto(graph).values(0).name().find('\xff'), std::string::npos);
}

TEST(ArrayTest, BytesAndValuesAreTheSame) {
  for (int t = proto::ELEMENT_F64; t <= proto::ElementType_MAX; ++t) {
    const auto type = static_cast<proto::ElementType>(t);
    Array array = Array::Zeros({type, {2}});
    if (array.is_real()) {
      array.reals = {1.5, -2};
    } else {
      array.integers = {1, Wrap(type, -1)};
    }
    const auto again = Array::Decode(array.type, array.Encode());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->reals, array.reals) << ElementTypeName(type);
    EXPECT_EQ(again->integers, array.integers) << ElementTypeName(type);
  }
  EXPECT_FALSE(Array::Decode(F32({2}), "short").ok());
}

TEST(ElementwiseTest, IntegersNeverOverflow) {
  const int64_t least = INT64_MIN;
  for (const ElementwiseOp& op : ElementwiseTable()) {
    if (op.integer == nullptr) continue;
    for (const int64_t a : {least, INT64_MAX, int64_t{-1}, int64_t{0}}) {
      for (const int64_t b : {least, INT64_MAX, int64_t{-1}, int64_t{0}}) {
        op.integer(proto::ELEMENT_I64, a, b, 0);
        op.integer(proto::ELEMENT_U64, a, b, 0);
      }
    }
  }
  const ElementwiseOp* const div = FindElementwise("div");
  EXPECT_EQ(div->integer(proto::ELEMENT_I64, -7, 2, 0), -3);
  EXPECT_EQ(FindElementwise("mod")->integer(proto::ELEMENT_I64, -7, 2, 0), 1);
}

}  // namespace
}  // namespace optrail::graph
