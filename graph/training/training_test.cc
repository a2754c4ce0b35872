#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/reference/reference.h"
#include "graph/training/gradients.h"
#include "graph/training/recompute.h"

namespace optrail::graph {
namespace {

TensorType F64(const Dims& dims) { return {optrail::proto::ELEMENT_F64, dims}; }

// Layers of what transformers are made of. `change` is added to element
// `element` of weight `weight`.
Graph Model(int layers, int weight = -1, int64_t element = 0,
            double change = 0) {
  Graph graph;
  int weights = 0;
  uint64_t seed = 1;
  const auto constant = [&](const Dims& dims) {
    Array array = RandomInput(F64(dims), ++seed, 2);
    if (weights++ == weight) array.reals[element] += change;
    return graph.AddConstant(absl::StrCat("w", weights), array);
  };
  const auto number = [&](double value) {
    return graph.AddConstant(
        "number", Array::Reals(optrail::proto::ELEMENT_F64, {}, {value}));
  };
  const auto node = [&](const std::string& op, const std::vector<int>& inputs,
                        const Attributes& attributes = {}) {
    const auto added = graph.AddNode(op, op, inputs, attributes);
    EXPECT_TRUE(added.ok()) << op << ": " << added.status();
    return added.value_or(0);
  };
  int x = graph.AddInput("x", F64({2, 3, 4}));
  for (int layer = 0; layer < layers; ++layer) {
    const int normed = node("layer_norm", {x, constant({4}), constant({4})},
                            {{"axis", int64_t{2}}, {"epsilon", 1e-5}});
    const int k = node("transpose", {normed}, {{"perm", Dims{0, 2, 1}}});
    const int scores = node("div", {node("matmul", {normed, k}), number(2)});
    const int p = node("softmax", {scores}, {{"axis", int64_t{2}}});
    const int rows =
        node("reshape", {node("matmul", {p, normed})}, {{"dims", Dims{6, 4}}});
    const int up =
        node("add", {node("matmul", {rows, constant({4, 5})}), constant({5})});
    const int half = node("mul", {up, number(.5)});
    const int erf = node("erf", {node("div", {up, number(std::sqrt(2))})});
    const int gelu = node("mul", {half, node("add", {erf, number(1)})});
    const int down = node("reshape", {node("matmul", {gelu, constant({5, 4})})},
                          {{"dims", Dims{2, 3, 4}}});
    x = node("add", {x, down});
  }
  const int gate = node("mul", {node("sigmoid", {x}), node("tanh", {x})});
  const int part =
      node("slice", {node("concat", {gate, x}, {{"axis", int64_t{2}}})},
           {{"starts", Dims{0, 1, 1}},
            {"steps", Dims{1, 1, 1}},
            {"dims", Dims{2, 2, 5}}});
  const int square = node("pow", {part, number(2)});
  graph.outputs = {
      node("sub", {node("reduce_mean", {square},
                        {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}),
                   number(3)})};
  return graph;
}

std::vector<Array> InputsOf(const Graph& graph) {
  return SeededInputs(graph, 7);
}

// The sum of the output's elements, each times its gradient.
double Loss(const Graph& model, const std::vector<Array>& inputs) {
  const auto outputs = RunReference(model, {inputs[0]});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  double loss = 0;
  for (int64_t i = 0; i < (*outputs)[0].elements(); ++i) {
    loss += (*outputs)[0].At(i) * inputs[1].At(i);
  }
  return loss;
}

TEST(GradientsTest, AreSlopesOfTheLoss) {
  const Graph model = Model(2);
  const auto training = WithGradients(model);
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_EQ(training->weights.size(), 10);
  EXPECT_EQ(training->graph.outputs.size(), 11);
  const std::vector<Array> inputs = InputsOf(training->graph);
  const auto outputs = RunReference(training->graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  constexpr double kStep = 1e-5;
  for (int w = 0; w < 10; ++w) {
    const Array& gradient = (*outputs)[w + 1];
    // In the order in which Model() makes them.
    const std::string& name = model.values[training->weights[w]].name;
    const int number = std::stoi(name.substr(1)) - 1;
    for (int64_t e = 0; e < gradient.elements(); ++e) {
      const double slope = (Loss(Model(2, number, e, kStep), inputs) -
                            Loss(Model(2, number, e, -kStep), inputs)) /
                           (2 * kStep);
      EXPECT_NEAR(gradient.At(e), slope, 1e-6 * (1 + std::fabs(slope)))
          << name << ", element " << e;
    }
  }
}

TEST(GradientsTest, NamesANodeWithoutARule) {
  Graph graph;
  const int x = graph.AddInput("x", F64({2, 3}));
  const int w = graph.AddConstant("w", RandomInput(F64({3, 3}), 1, 2));
  const int y = *graph.AddNode("product", "matmul", {x, w});
  graph.outputs = {*graph.AddNode("sums", "cumsum", {y},
                                  {{"axis", int64_t{0}},
                                   {"exclusive", int64_t{0}},
                                   {"reverse", int64_t{0}}})};
  EXPECT_EQ(WithGradients(graph).status().message(),
            "node \"sums\" (cumsum): has no rule for its gradient");
}

double OneForEach(const Graph& graph, const Node& node) {
  return node.op == "matmul" ? 100 : 1;
}

TEST(RecomputeTest, EachPointKeepsLessAndComputesTheSame) {
  const auto training = WithGradients(Model(3));
  ASSERT_TRUE(training.ok()) << training.status();
  const std::vector<Array> inputs = InputsOf(training->graph);
  const auto expected = RunReference(training->graph, inputs);
  ASSERT_TRUE(expected.ok());
  const auto front = RecomputeFront(*training, OneForEach);
  ASSERT_TRUE(front.ok()) << front.status();
  ASSERT_GT(front->size(), 3);
  EXPECT_EQ((*front)[0].added_ns, 0);
  for (size_t i = 0; i < front->size(); ++i) {
    SCOPED_TRACE((*front)[i].what);
    const RecomputePoint& point = (*front)[i];
    EXPECT_EQ(point.kept_bytes, KeptBytes(*training, point.dropped));
    if (i > 0) {
      EXPECT_LT(point.kept_bytes, (*front)[i - 1].kept_bytes);
    }
    const auto graph = Recompute(*training, point.dropped);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_TRUE(Validate(*graph).ok());
    const auto outputs = RunReference(*graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), expected->size());
    for (size_t o = 0; o < outputs->size(); ++o) {
      EXPECT_EQ((*outputs)[o].reals, (*expected)[o].reals);
    }
  }
  // Cheap values go first, and products are computed again at last if at all.
  EXPECT_LT((*front)[1].added_ns, 100);
}

// By a count of its own: the values of the forward pass that are read behind
// it, views as what they show.
TEST(RecomputeTest, KeptBytesAreThoseThatTheBackwardPassReads) {
  const auto training = WithGradients(Model(1));
  ASSERT_TRUE(training.ok());
  const Graph& graph = training->graph;
  std::set<int> read;
  for (size_t n = training->forward_nodes; n < graph.nodes.size(); ++n) {
    for (int value : graph.nodes[n].inputs) {
      while (value >= 0) {
        const int producer = graph.values[value].producer;
        if (producer < 0 || producer >= training->forward_nodes) break;
        const std::string& op = graph.nodes[producer].op;
        if (op != "reshape" && op != "transpose" && op != "slice") {
          read.insert(value);
          break;
        }
        value = graph.nodes[producer].inputs[0];
      }
    }
  }
  int64_t bytes = 0;
  for (const int value : read) bytes += graph.type(value).bytes();
  EXPECT_EQ(KeptBytes(*training, {}), bytes);
}

}  // namespace
}  // namespace optrail::graph
