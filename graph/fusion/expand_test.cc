#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph/fusion/fusion.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

constexpr auto kF32 = optrail::proto::ELEMENT_F32;
constexpr auto kI64 = optrail::proto::ELEMENT_I64;

TensorType F32(const Dims& dims) { return {kF32, dims}; }

// A graph of one node, whose operands are inputs unless they are constants.
struct One {
  Graph graph;
  std::vector<int> operands;

  One& Input(const Dims& dims) {
    operands.push_back(graph.AddInput("x", F32(dims)));
    return *this;
  }
  One& Numbers(const Dims& dims, Dims values) {
    operands.push_back(graph.AddConstant(
        "numbers", Array::Integers(kI64, dims, std::move(values))));
    return *this;
  }
  One& Reals(const Dims& dims, std::vector<double> values) {
    operands.push_back(graph.AddConstant(
        "reals", Array::Reals(kF32, dims, std::move(values))));
    return *this;
  }

  // The node is expanded, and its results stay the same.
  void Expect(const std::string& op, Attributes attributes, int results = 1) {
    const auto first = graph.AddNode("y", op, operands, std::move(attributes));
    ASSERT_TRUE(first.ok()) << first.status();
    for (int i = 0; i < results; ++i) graph.outputs.push_back(*first + i);
    const auto expanded = Simplify(graph);
    ASSERT_TRUE(expanded.ok()) << expanded.status();
    EXPECT_EQ(expanded->values[expanded->outputs[0]].name, "y");
    for (const Node& node : expanded->nodes) {
      if (node.op != op || node.inputs.size() != operands.size()) continue;
      EXPECT_NE(expanded->type(node.inputs[0]).dims,
                graph.type(operands[0]).dims)
          << op << " stays";
    }
    const std::vector<Array> inputs = SeededInputs(graph, 5);
    const auto expected = RunReference(graph, inputs);
    const auto ours = RunReference(*expanded, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(ours.ok()) << ours.status();
    for (size_t i = 0; i < expected->size(); ++i) {
      const Difference difference = Compare((*ours)[i], (*expected)[i]);
      EXPECT_EQ(difference.problem, "") << op;
      EXPECT_LT(difference.relative, 1e-6) << op << " result " << i;
    }
  }
};

TEST(ExpandTest, WindowsInOneDimension) {
  One()
      .Input({2, 6, 11})
      .Input({4, 3, 3})
      .Input({4})
      .Expect("conv", {{"strides", Dims{2}},
                       {"begin", Dims{1}},
                       {"end", Dims{2}},
                       {"dilations", Dims{2}},
                       {"group", int64_t{2}}});
  for (const char* op : {"max_pool", "avg_pool"}) {
    One()
        .Input({2, 3, 10})
        .Expect(op, {{"kernel", Dims{3}},
                     {"strides", Dims{2}},
                     {"begin", Dims{1}},
                     {"end", Dims{1}},
                     {"dilations", Dims{1}},
                     {"ceil", int64_t{0}},
                     {"count_padding", int64_t{1}}});
  }
}

Attributes Transposed(Dims strides, Dims begin, Dims end, Dims more,
                      int64_t group) {
  const Dims ones(strides.size(), 1);
  return {{"strides", std::move(strides)},
          {"begin", std::move(begin)},
          {"end", std::move(end)},
          {"dilations", ones},
          {"output_padding", std::move(more)},
          {"group", group}};
}

TEST(ExpandTest, TransposedConvolutions) {
  One()
      .Input({2, 4, 3, 5})
      .Input({4, 6, 2, 2})
      .Input({6})
      .Expect("conv_transpose", Transposed({2, 2}, {0, 0}, {0, 0}, {0, 0}, 1));
  One()
      .Input({2, 4, 3, 5})
      .Input({4, 3, 3, 4})
      .Input({6})
      .Expect("conv_transpose", Transposed({2, 3}, {1, 0}, {0, 2}, {1, 0}, 2));
  One()
      .Input({1, 4, 3, 3})
      .Input({4, 2, 1, 1})
      .Expect("conv_transpose", Transposed({1, 1}, {1, 0}, {0, 1}, {0, 0}, 1));
  One().Input({2, 4, 6}).Input({4, 3, 4}).Expect(
      "conv_transpose", Transposed({2}, {1}, {1}, {0}, 1));
}

TEST(ExpandTest, FirstAndLastOfTheLargest) {
  const std::vector<double> ties = {3, 1, 3, 2, 2, 2, -1, 0, -1, 5, 5, 4};
  for (const char* op : {"arg_max", "arg_min"}) {
    for (const int64_t last : {0, 1}) {
      for (const int64_t axis : {0, 1}) {
        One()
            .Reals({4, 3}, ties)
            .Expect(op, {{"axis", axis}, {"keepdims", last}, {"last", last}});
      }
    }
  }
}

TEST(ExpandTest, TheKLargestAndTheirPlaces) {
  const double nan = std::nan("");
  const std::vector<double> values = {3, 1, 3,  2,   2, 2,
                                      1, 0, -1, nan, 5, HUGE_VAL};
  for (const int64_t largest : {0, 1}) {
    One()
        .Reals({2, 6}, values)
        .Expect("top_k",
                {{"axis", int64_t{1}}, {"k", int64_t{4}}, {"largest", largest}},
                2);
  }
  One().Input({3, 7, 2}).Expect(
      "top_k",
      {{"axis", int64_t{1}}, {"k", int64_t{7}}, {"largest", int64_t{1}}}, 2);
}

TEST(ExpandTest, RunningSums) {
  for (const int64_t exclusive : {0, 1}) {
    for (const int64_t reverse : {0, 1}) {
      One().Input({2, 5, 3}).Expect("cumsum", {{"axis", int64_t{1}},
                                               {"exclusive", exclusive},
                                               {"reverse", reverse}});
    }
  }
}

TEST(ExpandTest, RowsByTheirIndices) {
  One()
      .Input({3, 4, 5})
      .Numbers({2, 2}, {-1, 0, 1, 3})
      .Expect("gather_nd", {{"batch_dims", int64_t{0}}});
  One()
      .Input({3, 4})
      .Numbers({2, 1, 2}, {2, -1, 0, 0})
      .Expect("gather_nd", {{"batch_dims", int64_t{0}}});
}

TEST(ExpandTest, ScatteredUpdates) {
  for (const char* reduction : {"", "add"}) {
    One()
        .Input({2, 4})
        .Numbers({2, 3}, {0, -1, 0, 2, 1, 2})
        .Input({2, 3})
        .Expect("scatter_elements",
                {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}});
  }
}

TEST(ExpandTest, SoftmaxAlongAnotherAxis) {
  One().Input({2, 5, 3}).Expect("softmax", {{"axis", int64_t{1}}});
}

TEST(ExpandTest, ManyPartsOfAConcatenation) {
  One one;
  for (int i = 0; i < 300; ++i) one.Input({1, 2 + i % 2});
  one.Expect("concat", {{"axis", int64_t{1}}});
}

TEST(ExpandTest, LongAxesStay) {
  Graph graph;
  const int x = graph.AddInput("x", F32({1, 50000}));
  graph.outputs = {*graph.AddNode(
      "y", "top_k", {x},
      {{"axis", int64_t{1}}, {"k", int64_t{5}}, {"largest", int64_t{1}}})};
  const auto same = Simplify(graph);
  ASSERT_TRUE(same.ok()) << same.status();
  ASSERT_EQ(same->nodes.size(), 1);
  EXPECT_EQ(same->nodes[0].op, "top_k");
}

}  // namespace
}  // namespace optrail::graph
