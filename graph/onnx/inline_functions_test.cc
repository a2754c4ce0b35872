#include "graph/onnx/inline_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "graph/ir/graph_text.h"
#include "graph/onnx/testing/model_builder.h"
#include "graph/onnx/testing/outline.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

using onnx::TensorProto;

// ONNX 1.12 does not know the field.
template <class Message>
void SetOverload(Message& message, int field, const std::string& overload) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      field, overload);
}

double OutputOf(const Imported& imported, double x) {
  const auto outputs = RunReference(
      imported.graph, {Array::Reals(proto::ELEMENT_F32, {1}, {x})});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0].At(0) : 0;
}

// y = leaky(leaky(x, .5), the call's slope).
ModelBuilder ModelWithFunctions() {
  ModelBuilder model;
  model.Input("x", {1}).Output("z");
  onnx::FunctionProto& leaky = model.Function("Leaky", {"a"}, {"b"});
  leaky.add_attribute("slope");
  ModelBuilder::Refer(ModelBuilder::NodeOf(leaky, "LeakyRelu", {"a"}, "b"),
                      "alpha", "slope", onnx::AttributeProto::FLOAT);
  onnx::FunctionProto& twice = model.Function("Twice", {"a", "unused"}, {"c"});
  for (const char* const name : {"slope", "first"}) {
    twice.add_attribute(name);
  }
  auto& half =
      *ModelBuilder::CallIn(twice, "Leaky", {"a"}, "b").add_attribute();
  half.set_name("slope");
  half.set_f(.5);
  half.set_type(onnx::AttributeProto::FLOAT);
  ModelBuilder::Refer(ModelBuilder::CallIn(twice, "Leaky", {"b"}, "c"), "slope",
                      "slope", onnx::AttributeProto::FLOAT);
  return model;
}

TEST(FunctionsTest, StandWhereTheyAreCalled) {
  ModelBuilder model = ModelWithFunctions();
  model.Call("Twice", {"x"}, "y");
  auto& slope = *model.Call("Leaky", {"y"}, "z").add_attribute();
  slope.set_name("slope");
  slope.set_f(.25);
  slope.set_type(onnx::AttributeProto::FLOAT);
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->uncovered.empty());
  EXPECT_EQ(imported->onnx_nodes, 3);
  // A slope that nobody gives is LeakyRelu's own.
  EXPECT_NEAR(OutputOf(*imported, -8), -8 * .5 * .01 * .25, 1e-6);
  EXPECT_NE(GraphText(imported->graph).find("the_y/"), std::string::npos);
}

TEST(FunctionsTest, WhatIsHandedThroughKeepsTheNameOfTheCall) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  model.Function("Same", {"a"}, {"a"});
  model.Call("Same", {"x"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(OutputOf(*imported, 3), 3);
}

// One output, of one input.
double Output(const ModelBuilder& model, double x) {
  const auto imported = model.Import();
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? OutputOf(*imported, x) : 0;
}

TEST(FunctionsTest, OutputsThatAreOneValueAreBothThere) {
  ModelBuilder model;
  model.Input("x", {1}).Output("z");
  onnx::FunctionProto& pair = model.Function("Pair", {"a"}, {"b", "b"});
  ModelBuilder::NodeOf(pair, "Neg", {"a"}, "b");
  model.Call("Pair", {"x"}, "y").add_output("y2");
  model.Node("Add", {"y", "y2"}, "z");
  EXPECT_EQ(Output(model, 3), -6);
}

// F(a) = If(true) {t = -k; a + t}, called with a value "t".
TEST(FunctionsTest, GraphsInsideHideNoValueOfTheCaller) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
  ModelBuilder::TrueIn(function, "is");
  ModelBuilder::NodeOf(function, "Exp", {"a"}, "k");
  auto& branch = ModelBuilder::GraphOf(
      ModelBuilder::NodeOf(function, "If", {"is"}, "b"), "then_branch", "u");
  ModelBuilder::NodeOf(branch, "Neg", {"k"}, "t");
  ModelBuilder::NodeOf(branch, "Add", {"a", "t"}, "u");
  model.Node("Abs", {"x"}, "t");
  model.Call("F", {"t"}, "y");
  EXPECT_NEAR(Output(model, -2), 2 - std::exp(2), 1e-5);
}

// The call's graph reads the caller's "t", inside of a graph with a "t".
TEST(FunctionsTest, GraphsThatACallHandsOverKeepTheirValues) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
  function.add_attribute("then");
  ModelBuilder::TrueIn(function, "is");
  auto& outer = ModelBuilder::GraphOf(
      ModelBuilder::NodeOf(function, "If", {"is"}, "b"), "then_branch", "u");
  ModelBuilder::NodeOf(outer, "Neg", {"a"}, "t");
  ModelBuilder::NodeOf(outer, "Abs", {"t"}, "v");
  auto& inner = ModelBuilder::NodeOf(outer, "If", {"is"}, "w");
  ModelBuilder::Refer(inner, "then_branch", "then",
                      onnx::AttributeProto::GRAPH);
  ModelBuilder::NodeOf(outer, "Add", {"v", "w"}, "u");
  model.Node("Exp", {"x"}, "t");
  auto& call = model.Call("F", {"x"}, "y");
  auto& given = ModelBuilder::GraphOf(call, "then", "v");
  ModelBuilder::NodeOf(given, "Neg", {"t"}, "v");
  EXPECT_NEAR(Output(model, -2), 2 - std::exp(-2), 1e-6);
}

TEST(FunctionsTest, GraphsInsideHaveTheOpsetOfTheFunction) {
  ModelBuilder model;
  model.Input("x", {1, 2, 2}).Output("y");
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
  function.add_opset_import()->set_version(12);
  ModelBuilder::TrueIn(function, "is");
  auto& branch = ModelBuilder::GraphOf(
      ModelBuilder::NodeOf(function, "If", {"is"}, "b"), "then_branch", "u");
  ModelBuilder::NodeOf(branch, "Softmax", {"a"}, "u");
  model.Call("F", {"x"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto outputs = RunReference(
      imported->graph, {Array::Zeros({proto::ELEMENT_F32, {1, 2, 2}})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // From opset 13 on it is over the last dimension alone.
  EXPECT_NEAR((*outputs)[0].At(0), .25, 1e-6);
}

// F(a) has an inner value "b": of a call "layer" it would be "layer/b".
ModelBuilder ModelWithInnerValue() {
  ModelBuilder model;
  model.Input("x", {1}).Output("z");
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"c"});
  ModelBuilder::NodeOf(function, "Neg", {"a"}, "b");
  ModelBuilder::NodeOf(function, "Exp", {"b"}, "c");
  return model;
}

TEST(FunctionsTest, CallsMayHaveTheSameName) {
  ModelBuilder model = ModelWithInnerValue();
  model.Call("F", {"x"}, "y").set_name("layer");
  model.Call("F", {"y"}, "z").set_name("layer");
  EXPECT_NEAR(Output(model, 1), std::exp(-std::exp(-1)), 1e-6);
}

TEST(FunctionsTest, ValuesMayHaveTheNamesThatInnerOnesWouldGet) {
  ModelBuilder computed = ModelWithInnerValue();
  computed.Node("Abs", {"x"}, "layer/b");
  computed.Call("F", {"x"}, "y").set_name("layer");
  computed.Node("Add", {"y", "layer/b"}, "z");
  EXPECT_NEAR(Output(computed, 1), std::exp(-1) + 1, 1e-6);

  ModelBuilder constant = ModelWithInnerValue();
  TensorProto& tensor = *constant.graph().add_initializer();
  tensor.set_name("layer/b");
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(1);
  tensor.add_float_data(7);
  constant.Call("F", {"x"}, "y").set_name("layer");
  constant.Node("Add", {"y", "layer/b"}, "z");
  EXPECT_NEAR(Output(constant, 1), std::exp(-1) + 7, 1e-6);
}

TEST(FunctionsTest, OverloadsAreFunctionsOfTheirOwn) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  for (const char* const op : {"Exp", "Neg"}) {
    onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
    SetOverload(function, 13, op);
    ModelBuilder::NodeOf(function, op, {"a"}, "b");
  }
  ModelBuilder wrong = model;
  SetOverload(model.Call("F", {"x"}, "y"), 8, "Neg");
  EXPECT_EQ(Output(model, 3), -3);

  wrong.Call("F", {"x"}, "y");
  const auto without = wrong.Import();
  ASSERT_TRUE(without.ok()) << without.status();
  ASSERT_EQ(without->uncovered.size(), 1);
  EXPECT_EQ(without->uncovered[0].op, "F");
  SetOverload(wrong.Function("F", {"a"}, {"a"}), 13, "Neg");
  EXPECT_SAYS(wrong.Error(),
              "two functions are called \"F\" of domain \"own\"");
}

TEST(FunctionsTest, WithoutAMeaningAreErrors) {
  const auto error = [](const std::vector<std::string>& outputs,
                        const std::string& reads) {
    ModelBuilder model;
    model.Input("x", {1}).Output("y");
    onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
    for (const std::string& output : outputs) {
      ModelBuilder::NodeOf(function, "Relu", {reads}, output);
    }
    model.Call("F", {"x"}, "y");
    return model.Error();
  };
  EXPECT_EQ(error({"b"}, "a"), "no error");
  EXPECT_SAYS(error({"b"}, "x"),
              "node \"the_y\" (F): its function reads \"x\"");
  EXPECT_SAYS(error({"c"}, "a"), "its function reads \"b\"");
  EXPECT_SAYS(error({"b", "b"}, "a"), "two values called \"b\"");
  EXPECT_SAYS(error({"b", "a"}, "a"), "two values called \"a\"");

  ModelBuilder many = ModelWithFunctions();
  many.Call("Leaky", {"x", "x"}, "z");
  EXPECT_SAYS(many.Error(), "2 inputs and 1 outputs; expected at most the 1");
}

// --- Functions made of a model's nodes

// Nodes of any kind over f32[3,3], each of which reads what is there by then.
ModelBuilder RandomModel(Rng& rng) {
  ModelBuilder model;
  model.Input("v0", {3, 3}).Input("v1", {3, 3});
  std::vector<std::string> values = {"v0", "v1"};
  ModelBuilder::TrueIn(model.graph(), "is");
  const auto any = [&] { return values[rng.UniformInt(values.size())]; };
  for (int i = 0; i < 12; ++i) {
    const std::string name = absl::StrCat("v", values.size());
    switch (rng.UniformInt(7)) {
      case 0:
        model.Node("Add", {any(), any()}, name);
        break;
      case 1:
        model.Node("MatMul", {any(), any()}, name);
        break;
      case 2:
        ModelBuilder::Set(model.Node("Softmax", {any()}, name), "axis",
                          rng.UniformInt(2));
        break;
      case 3:
        ModelBuilder::SetInts(model.Node("Transpose", {any()}, name), "perm",
                              {1, 0});
        break;
      case 4: {
        auto& alpha = *model.Node("Elu", {any()}, name).add_attribute();
        alpha.set_name("alpha");
        alpha.set_type(onnx::AttributeProto::FLOAT);
        alpha.set_f(static_cast<float>(rng.UniformReal()));
        break;
      }
      case 5:
        // An absent input.
        model.Node("ReduceMax", {any()}, absl::StrCat(name, "m"));
        model.Node("Clip", {any(), "", absl::StrCat(name, "m")}, name);
        ModelBuilder::Set(
            *model.graph().mutable_node(model.graph().node_size() - 2),
            "keepdims", 0);
        break;
      default: {
        auto& branch = ModelBuilder::GraphOf(model.Node("If", {"is"}, name),
                                             "then_branch", "t");
        // It hides nothing of the outside, and may be hidden.
        ModelBuilder::NodeOf(branch, "Tanh", {any()}, "u");
        ModelBuilder::NodeOf(branch, "Mul", {"u", any()}, "t");
      }
    }
    values.push_back(name);
  }
  model.Output(values.back()).Output(values[values.size() - 2]);
  return model;
}

TEST(OutlinedTest, ModelsComputeTheSame) {
  int functions = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const ModelBuilder model = RandomModel(rng);
    const auto expected = model.Import();
    ASSERT_TRUE(expected.ok()) << expected.status();
    onnx::ModelProto outlined;
    ASSERT_TRUE(outlined.ParseFromString(model.Bytes()));
    for (int i = 0; i < 8; ++i) Outline(outlined, rng);
    functions += outlined.functions_size();
    const auto read = ParseOnnxModel(outlined.SerializeAsString(), "");
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status();
    const auto imported = ImportOnnxModel(*read);
    ASSERT_TRUE(imported.ok()) << "seed " << seed << ": " << imported.status();
    ASSERT_TRUE(imported->uncovered.empty()) << "seed " << seed;
    const std::vector<Array> inputs = SeededInputs(expected->graph, seed);
    const auto before = RunReference(expected->graph, inputs);
    const auto after = RunReference(imported->graph, inputs);
    ASSERT_TRUE(before.ok() && after.ok()) << "seed " << seed;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ((*before)[i].reals, (*after)[i].reals) << "seed " << seed;
    }
  }
  EXPECT_GT(functions, 1000);
}

// --- Small files that ask for much

std::string Level(int i) { return absl::StrCat("f", i); }

// f0 calls f1 twice, and so on.
ModelBuilder Doubling(int levels, const std::string& call) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  for (int i = 0; i < levels; ++i) {
    onnx::FunctionProto& function = model.Function(Level(i), {"a"}, {"c"});
    ModelBuilder::CallIn(function, Level(i + 1), {"a"}, "b").set_name(call);
    ModelBuilder::CallIn(function, Level(i + 1), {"b"}, "c").set_name(call);
  }
  model.Call("f0", {"x"}, "y").set_name(call);
  return model;
}

TEST(HostileFunctionsTest, CallsWithoutNodesCount) {
  // Each of f0's calls is f1, with as many of f2, which has no nodes.
  ModelBuilder many;
  many.Input("x", {1}).Output("y");
  for (int i = 0; i < 2; ++i) {
    onnx::FunctionProto& function = many.Function(Level(i), {"a"}, {"0"});
    for (int k = 0; k < 1100; ++k) {
      ModelBuilder::CallIn(function, Level(i + 1), {"a"}, absl::StrCat(k))
          .set_name("n");
    }
  }
  many.Function(Level(2), {"a"}, {"a"});
  many.Call(Level(0), {"x"}, "y").set_name("n");
  EXPECT_SAYS(many.Error(), "the model's functions have more than 1048576 ");

  ModelBuilder endless = Doubling(40, "n");
  endless.Function(Level(40), {"a"}, {"a"});
  EXPECT_SAYS(endless.Error(), "the model's functions have more than ");

  ModelBuilder few = Doubling(4, "n");
  few.Function(Level(4), {"a"}, {"a"});
  EXPECT_EQ(Output(few, 3), 3);
}

TEST(HostileFunctionsTest, BytesOfNamesCount) {
  ModelBuilder model = Doubling(16, std::string(10'000, 'n'));
  ModelBuilder::NodeOf(model.Function(Level(16), {"a"}, {"c"}), "Relu", {"a"},
                       "c");
  EXPECT_SAYS(model.Error(), "268435456 bytes of names and attributes");
}

TEST(HostileFunctionsTest, BytesOfAttributesCount) {
  ModelBuilder model = Doubling(12, "n");
  ModelBuilder::SetInts(
      ModelBuilder::NodeOf(model.Function(Level(12), {"a"}, {"c"}), "Relu",
                           {"a"}, "c"),
      "unused", Dims(100'000, 1));
  EXPECT_SAYS(model.Error(), "268435456 bytes of names and attributes");
}

// A file of a megabyte that calls it 10^5 times would need 100 GB.
TEST(HostileFunctionsTest, ConstantsAreOneHoweverOftenFunctionsAreCalled) {
  ModelBuilder model;
  model.Input("x", {4});
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
  auto& attribute =
      *ModelBuilder::NodeOf(function, "Constant", {}, "c").add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->set_data_type(TensorProto::FLOAT);
  attribute.mutable_t()->add_dims(4);
  for (int i = 0; i < 4; ++i) attribute.mutable_t()->add_float_data(i);
  ModelBuilder::NodeOf(function, "Add", {"a", "c"}, "b");
  for (int i = 0; i < 3; ++i) {
    model.Call("F", {"x"}, absl::StrCat("y", i));
    model.Output(absl::StrCat("y", i));
  }
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  std::set<const std::string*> bytes;
  int constants = 0;
  for (const Value& value : imported->graph.values) {
    if (value.constant == nullptr) continue;
    ++constants;
    bytes.insert(value.constant->bytes.get());
  }
  EXPECT_EQ(constants, 3);
  EXPECT_EQ(bytes.size(), 1);
}

TEST(HostileFunctionsTest, GraphsThatCallsHandOnCount) {
  ModelBuilder model;
  model.Input("x", {1}).Output("y");
  onnx::FunctionProto& function = model.Function("F", {"a"}, {"b"});
  ModelBuilder::TrueIn(function, "is");
  for (int i = 0; i < 1000; ++i) {
    ModelBuilder::Refer(
        ModelBuilder::NodeOf(function, "If", {"is"},
                             i == 0 ? "b" : absl::StrCat("b", i)),
        "then_branch", "then", onnx::AttributeProto::GRAPH);
  }
  auto& given = ModelBuilder::GraphOf(model.Call("F", {"x"}, "y"), "then", "v");
  for (int i = 0; i < 2000; ++i) {
    ModelBuilder::NodeOf(given, "Neg", {"x"},
                         i == 0 ? "v" : absl::StrCat("v", i));
  }
  EXPECT_SAYS(model.Error(), "the model's functions have more than 1048576 ");
}

// A depth that is known of the functions inside counts for those around them.
TEST(HostileFunctionsTest, DepthCountsHoweverFunctionsAreCalledFirst) {
  constexpr int kLevels = 20'000;
  ModelBuilder model;
  model.Input("x", {1});
  for (int i = 0; i < kLevels; ++i) {
    ModelBuilder::CallIn(model.Function(Level(i), {"a"}, {"c"}), Level(i + 1),
                         {"a"}, "c");
  }
  model.Function(Level(kLevels), {"a"}, {"a"});
  for (int i = kLevels - 50; i >= 0; i -= 50) {
    model.Call(Level(i), {"x"}, absl::StrCat("y", i));
  }
  EXPECT_SAYS(model.Error(), "calls of functions are more than 64 deep");
}

TEST(HostileFunctionsTest, FunctionsThatCallThemselvesAreErrors) {
  ModelBuilder circle;
  circle.Input("x", {1}).Output("y");
  onnx::FunctionProto& self = circle.Function("Self", {"a"}, {"b"});
  ModelBuilder::CallIn(self, "Self", {"a"}, "b");
  circle.Call("Self", {"x"}, "y");
  EXPECT_SAYS(circle.Error(), "calls of functions are more than 64 deep");
}

}  // namespace
}  // namespace optrail::graph
