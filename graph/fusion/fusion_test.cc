#include "graph/fusion/fusion.h"

#include <gtest/gtest.h>

#include "graph/ir/graph_text.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

TensorType F32(const Dims& dims) { return {proto::ELEMENT_F32, dims}; }

class FusionTest : public testing::Test {
 protected:
  FusionTest() { x_ = graph_.AddInput("x", F32({5, 8})); }

  int Constant(const Dims& dims, double deviation = 0.5) {
    return graph_.AddConstant("c", F32(dims),
                              graph::Constant{nullptr, ++seed_, deviation});
  }
  int Number(double value) {
    return graph_.AddConstant("n",
                              Array::Reals(proto::ELEMENT_F32, {}, {value}));
  }
  int Add(const std::string& op, std::vector<int> inputs,
          Attributes attributes = {}) {
    return *graph_.AddNode(op, op, std::move(inputs), std::move(attributes));
  }

  // Fuses, and compares with the graph before.
  Graph FusedAndSame() {
    const auto fused = Fuse(graph_, FusionRules(), &report_);
    EXPECT_TRUE(fused.ok()) << fused.status();
    EXPECT_TRUE(Validate(*fused).ok()) << Validate(*fused);
    const Array x = RandomInput(graph_.type(x_), 3, 1);
    const auto before = RunReference(graph_, {x});
    const auto after = RunReference(*fused, {x});
    for (size_t i = 0; i < before->size(); ++i) {
      EXPECT_LT(Compare((*after)[i], (*before)[i]).relative, 1e-6);
    }
    return *fused;
  }

  Graph graph_;
  int x_ = -1;
  uint64_t seed_ = 0;
  FusionReport report_;
};

TEST_F(FusionTest, ALayerBecomesOneNode) {
  const int t =
      Add("add", {Constant({16}), Add("matmul", {x_, Constant({8, 16})})});
  const int gate = Add(
      "add",
      {Add("erf", {Add("div", {t, Number(1.4142135381698608)})}), Number(1)});
  graph_.outputs = {Add("mul", {Add("mul", {t, gate}), Number(0.5)})};
  const Graph fused = FusedAndSame();
  ASSERT_EQ(fused.nodes.size(), 1) << GraphText(fused);
  EXPECT_EQ(fused.nodes[0].op, "linear");
  EXPECT_EQ(fused.nodes[0].Text("activation"), "gelu");
}

TEST_F(FusionTest, AReluJoinsItsLayer) {
  graph_.outputs = {Add(
      "relu",
      {Add("add", {Add("matmul", {x_, Constant({8, 16})}), Constant({16})})})};
  const Graph fused = FusedAndSame();
  ASSERT_EQ(fused.nodes.size(), 1) << GraphText(fused);
  EXPECT_EQ(fused.nodes[0].Text("activation"), "relu");
}

TEST_F(FusionTest, ASecondConsumerBreaksThePattern) {
  const int product = Add("matmul", {x_, Constant({8, 16})});
  graph_.outputs = {Add("add", {product, Constant({16})}),
                    Add("neg", {product})};
  EXPECT_EQ(FusedAndSame().nodes.size(), 3);
  ASSERT_EQ(report_.size(), 1);
  EXPECT_EQ(report_[0].why_not,
            "the result has two consumers (neg reads matmul)");
}

TEST_F(FusionTest, AnOutputBreaksThePattern) {
  const int product = Add("matmul", {x_, Constant({8, 16})});
  graph_.outputs = {Add("add", {product, Constant({16})}), product};
  EXPECT_EQ(FusedAndSame().nodes.size(), 2);
  EXPECT_EQ(report_.at(0).why_not, "a result is an output");
}

TEST_F(FusionTest, ABiasOfAnotherShapeIsNoBias) {
  const int product = Add("matmul", {x_, Constant({8, 16})});
  graph_.outputs = {Add("add", {product, Constant({5, 16})})};
  EXPECT_EQ(FusedAndSame().nodes.size(), 2);
  EXPECT_EQ(report_.at(0).why_not, "b is f32[5,16], not a row of 16");
}

TEST_F(FusionTest, ARootMeanSquareIsFound) {
  const int mean = Add("reduce_mean", {Add("pow", {x_, Number(2)})},
                       {{"axes", Dims{1}}, {"keepdims", int64_t{1}}});
  const int root = Add("sqrt", {Add("add", {mean, Number(1e-5)})});
  graph_.outputs = {Add("mul", {Add("div", {x_, root}), Constant({8})})};
  const Graph fused = FusedAndSame();
  ASSERT_EQ(fused.nodes.size(), 1) << GraphText(fused);
  EXPECT_EQ(fused.nodes[0].op, "rms_norm");
  EXPECT_NEAR(fused.nodes[0].Real("epsilon"), 1e-5, 1e-9);
}

TEST_F(FusionTest, ARuleThatCannotBeReadIsAnError) {
  graph_.outputs = {Add("neg", {x_})};
  for (const char* pattern : {"relu(", "relu($x", "relu($x))", "", "relu"}) {
    const auto fused =
        Fuse(graph_, {{"broken", pattern, {}, "neg($x)"}}, &report_);
    ASSERT_FALSE(fused.ok()) << pattern;
    EXPECT_NE(fused.status().message().find("rule \"broken\""),
              std::string::npos);
  }
}

TEST_F(FusionTest, SimplifyKeepsConvolutionsWithBiasAndNorm) {
  Graph graph;
  const int x = graph.AddInput("x", F32({1, 3, 6, 6}));
  const auto constant = [&](const Dims& dims) {
    return graph.AddConstant("c", F32(dims),
                             graph::Constant{nullptr, ++seed_, 0.5});
  };
  const int conv =
      *graph.AddNode("conv", "conv", {x, constant({4, 3, 3, 3}), constant({4})},
                     {{"strides", Dims{1, 1}},
                      {"begin", Dims{1, 1}},
                      {"end", Dims{1, 1}},
                      {"dilations", Dims{1, 1}},
                      {"group", int64_t{1}}});
  const int variance = graph.AddConstant(
      "v", Array::Reals(proto::ELEMENT_F32, {4}, {1, 2, 3, 4}));
  graph.outputs = {*graph.AddNode(
      "norm", "batch_norm",
      {conv, constant({4}), constant({4}), constant({4}), variance},
      {{"epsilon", 1e-5}})};
  const auto simple = Simplify(graph);
  ASSERT_TRUE(simple.ok()) << simple.status();
  ASSERT_TRUE(Validate(*simple).ok());
  const Array input = RandomInput(graph.type(x), 5, 1);
  EXPECT_LT(Compare((*RunReference(*simple, {input}))[0],
                    (*RunReference(graph, {input}))[0])
                .relative,
            1e-6);
  for (const Node& node : simple->nodes) EXPECT_NE(node.op, "batch_norm");
}

}  // namespace
}  // namespace optrail::graph
