#include "graph/fusion/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

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

class AttentionFusionTest : public FusionTest {
 protected:
  // softmax(q k * scale + mask) v over 5 x 7.
  Graph Scores(double scale, const Array* mask) {
    Graph graph;
    const auto input = [&](const char* name, const Dims& dims) {
      return graph.AddInput(name, F32(dims));
    };
    const auto add = [&](const char* op, std::vector<int> inputs,
                         Attributes attributes = {}) {
      return *graph.AddNode(op, op, std::move(inputs), std::move(attributes));
    };
    const int q = input("q", {1, 2, 5, 4}), k = input("k", {1, 2, 4, 7});
    const int v = input("v", {1, 2, 7, 4});
    int scores =
        add("mul", {add("matmul", {q, k}),
                    graph.AddConstant(
                        "s", Array::Reals(proto::ELEMENT_F32, {}, {scale}))});
    if (mask != nullptr) {
      scores = add("add", {graph.AddConstant("m", *mask), scores});
    }
    const int weights = add("softmax", {scores}, {{"axis", int64_t{3}}});
    graph.outputs = {add("matmul", {weights, v})};
    return graph;
  }

  // Row i sees what is up to i + 2 + more.
  static Array Mask(int64_t more, double hides) {
    Array mask = Array::Zeros(F32({5, 7}));
    for (int64_t i = 0; i < 35; ++i) {
      if (i % 7 > i / 7 + 2 + more) mask.reals[i] = hides;
    }
    return mask;
  }

  // The only node left; "" for several. Fused and before are the same.
  std::string Fused(const Graph& graph) {
    report_.clear();
    const auto fused = Fuse(graph, FusionRules(), &report_);
    EXPECT_TRUE(fused.ok()) << fused.status();
    const std::vector<Array> inputs = SeededInputs(graph, 1);
    EXPECT_LT(Compare((*RunReference(*fused, inputs))[0],
                      (*RunReference(graph, inputs))[0])
                  .relative,
              1e-6);
    return fused->nodes.size() == 1
               ? fused->nodes[0].op + fused->nodes[0].Text("causal")
               : "";
  }
};

TEST_F(AttentionFusionTest, ScaledProductsAndSoftmaxBecomeOneNode) {
  EXPECT_EQ(Fused(Scores(0.5, nullptr)), "attention");
}

TEST_F(AttentionFusionTest, FactorsMayBeScaledBeforeTheirProduct) {
  const double half = std::sqrt(0.5);
  for (const auto& [op, of_q, of_k] :
       {std::tuple("mul", 0.5, 1.0), {"div", 2.0, 1.0}, {"mul", half, half}}) {
    Graph graph;
    const auto scaled = [&](int value, double factor) {
      const int number = graph.AddConstant(
          "s", Array::Reals(proto::ELEMENT_F32, {}, {factor}));
      return factor == 1 ? value : *graph.AddNode(op, op, {value, number});
    };
    const int q = graph.AddInput("q", F32({1, 2, 5, 4}));
    const int k = graph.AddInput("k", F32({1, 2, 4, 7}));
    const int v = graph.AddInput("v", F32({1, 2, 7, 4}));
    const int scores =
        *graph.AddNode("qk", "matmul", {scaled(q, of_q), scaled(k, of_k)});
    const int weights =
        *graph.AddNode("p", "softmax", {scores}, {{"axis", int64_t{3}}});
    graph.outputs = {*graph.AddNode("y", "matmul", {weights, v})};
    EXPECT_EQ(Fused(graph), "attention") << op << of_k;
  }
}

TEST_F(AttentionFusionTest, ACausalMaskIsRecognised) {
  const Array mask = Mask(0, -1e30), infinite = Mask(0, -INFINITY);
  EXPECT_EQ(Fused(Scores(0.5, &mask)), "attentionyes");
  EXPECT_EQ(Fused(Scores(0.5, &infinite)), "attentionyes");
}

TEST_F(AttentionFusionTest, OtherMasksAndScalesStay) {
  const Array wider = Mask(1, -1e30), soft = Mask(0, -3);
  EXPECT_EQ(Fused(Scores(0.5, &wider)), "");
  EXPECT_EQ(report_.at(0).why_not, "m is f32[5,7], not a causal mask");
  EXPECT_EQ(Fused(Scores(0.5, &soft)), "");
  EXPECT_EQ(Fused(Scores(0.3, nullptr)), "");
  EXPECT_EQ(report_.at(0).why_not,
            "q is f32[1,2,5,4], and the scale 0.3 is not 0.5");
}

TEST_F(FusionTest, LayersOfOneFactorBecomeOne) {
  // Q, K and V of unequal sizes; the relu belongs to a layer of its own.
  const auto layer = [&](int64_t size) {
    return Add("add",
               {Add("matmul", {x_, Constant({8, size})}), Constant({size})});
  };
  graph_.outputs = {layer(16), layer(4), Add("relu", {layer(8)}),
                    Add("neg", {layer(4)})};
  const Graph fused = FusedAndSame();
  int linears = 0, slices = 0;
  for (const Node& node : fused.nodes) {
    linears += node.op == "linear" ? 1 : 0;
    slices += node.op == "slice" ? 1 : 0;
    if (node.op != "linear" || !node.Text("activation").empty()) continue;
    EXPECT_EQ(fused.type(node.outputs[0]).dims, (Dims{5, 24}));
  }
  EXPECT_EQ(linears, 2) << GraphText(fused);
  EXPECT_EQ(slices, 3) << GraphText(fused);
}

TEST_F(FusionTest, ProductsWithComputedFactorsAreNotJoined) {
  const int w = graph_.AddInput("w", F32({8, 16}));
  graph_.outputs = {Add("matmul", {x_, w}),
                    Add("matmul", {x_, Constant({8, 3})})};
  const auto fused = Fuse(graph_, FusionRules(), &report_);
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(fused->nodes.size(), 2);
  ASSERT_EQ(report_.size(), 1);
  EXPECT_EQ(report_[0].rule, "products of one factor");
  EXPECT_EQ(report_[0].why_not, "w is f32[8,16], computed");
}

TEST_F(FusionTest, ANormTakesTheResidualAndKeepsTheSum) {
  for (const bool is_read : {true, false}) {
    graph_ = Graph();
    x_ = graph_.AddInput("x", F32({5, 8}));
    const int sum = Add("add", {x_, Add("neg", {x_})});
    // A reader of the sum may stand before the norm.
    const int early = is_read ? Add("relu", {sum}) : x_;
    const int norm = Add("layer_norm", {sum, Constant({8}), Constant({8})},
                         {{"axis", int64_t{1}}, {"epsilon", 1e-5}});
    graph_.outputs = {norm, Add("add", {early, norm})};
    const Graph fused = FusedAndSame();
    const auto has = [&](const char* op) {
      return std::any_of(fused.nodes.begin(), fused.nodes.end(),
                         [&](const Node& node) { return node.op == op; });
    };
    EXPECT_TRUE(has("add_layer_norm")) << GraphText(fused);
    EXPECT_FALSE(has("layer_norm"));
  }
}

TEST_F(FusionTest, AResidualIsNotTakenBeforeItsScaleIsKnown) {
  const int scale = graph_.AddInput("scale", F32({8}));
  const int sum = Add("add", {x_, Add("neg", {x_})});
  graph_.outputs = {
      Add("rms_norm", {sum, scale}, {{"axis", int64_t{1}}, {"epsilon", 1e-5}})};
  const auto fused = Fuse(graph_, FusionRules(), &report_);
  ASSERT_TRUE(fused.ok());
  ASSERT_EQ(report_.size(), 1);
  EXPECT_EQ(report_[0].why_not, "w is f32[8], computed");
}

TEST_F(FusionTest, AConvolutionTakesScaleShiftAndRelu) {
  for (const bool scales : {true, false}) {
    for (const int64_t group : {1, 2}) {
      graph_ = Graph();
      report_.clear();
      x_ = graph_.AddInput("x", F32({2, 4, 6, 6}));
      int y = Add("conv", {x_, Constant({8, 4 / group, 3, 3})},
                  {{"strides", Dims{2, 2}},
                   {"begin", Dims{1, 1}},
                   {"end", Dims{1, 1}},
                   {"dilations", Dims{1, 1}},
                   {"group", group}});
      if (scales) y = Add("mul", {y, Constant({1, 8, 1, 1})});
      graph_.outputs = {Add("relu", {Add("add", {y, Constant({8, 1, 1})})})};
      const Graph fused = FusedAndSame();
      EXPECT_EQ(fused.nodes.size(), group == 1 ? 1 : scales ? 4 : 3);
      EXPECT_EQ(report_.at(0).why_not,
                group == 1 ? "" : "the convolution is grouped");
    }
  }
}

TEST_F(FusionTest, SimplifyDropsWhatChangesNothing) {
  const int zeros = graph_.AddConstant("zeros", Array::Zeros(F32({5, 8})));
  const int y = Add("relu", {Add("mul", {Add("add", {zeros, x_}), Number(1)})});
  // Wider than x: it repeats x and stays.
  const int wide = graph_.AddConstant("wide", Array::Zeros(F32({2, 5, 8})));
  graph_.outputs = {y, Add("add", {x_, wide}), Add("add", {x_, zeros})};
  const auto simple = Simplify(graph_);
  ASSERT_TRUE(simple.ok()) << simple.status();
  ASSERT_TRUE(Validate(*simple).ok()) << Validate(*simple);
  EXPECT_EQ(simple->nodes.size(), 2);
  EXPECT_EQ(simple->values[simple->inputs[0]].name, "x");
  const Array x = RandomInput(graph_.type(x_), 3, 1);
  const auto before = RunReference(graph_, {x});
  const auto after = RunReference(*simple, {x});
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ((*after)[i].reals, (*before)[i].reals);
  }
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
