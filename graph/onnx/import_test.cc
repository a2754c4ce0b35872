#include "graph/onnx/import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/random.h"
#include "graph/ir/graph_text.h"
#include "graph/reference/reference.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

namespace optrail::graph {
namespace {

using onnx::TensorProto;

// A model, built node by node.
class ModelBuilder {
 public:
  ModelBuilder() { model_.add_opset_import()->set_version(17); }

  ModelBuilder& Input(const std::string& name, const Dims& dims,
                      int type = TensorProto::FLOAT) {
    Declare(*graph().add_input(), name, dims, type);
    return *this;
  }
  ModelBuilder& Output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  ModelBuilder& Says(const std::string& name, const Dims& dims) {
    Declare(*graph().add_value_info(), name, dims, TensorProto::FLOAT);
    return *this;
  }
  ModelBuilder& Ints(const std::string& name, const Dims& values) {
    TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }
  onnx::NodeProto& Node(const std::string& op,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(op);
    node.set_name(absl::StrCat("the_", output));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  static void Set(onnx::NodeProto& node, const std::string& name,
                  int64_t value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void SetInts(onnx::NodeProto& node, const std::string& name,
                      const Dims& values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }

  // A function of the model's own, of the domain "own".
  onnx::FunctionProto& Function(const std::string& name,
                                const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs) {
    onnx::FunctionProto& function = *model_.add_functions();
    function.set_name(name);
    function.set_domain("own");
    for (const std::string& input : inputs) function.add_input(input);
    for (const std::string& output : outputs) function.add_output(output);
    return function;
  }
  static onnx::NodeProto& NodeOf(onnx::FunctionProto& function,
                                 const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const std::string& output) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type(op);
    node.set_name(absl::StrCat("the_", output));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  onnx::NodeProto& Call(const std::string& function,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = Node(function, inputs, output);
    node.set_domain("own");
    return node;
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string Bytes() const { return model_.SerializeAsString(); }

  absl::StatusOr<Imported> Import(const ImportOptions& options = {}) const {
    const auto model = ParseOnnxModel(Bytes(), "");
    if (!model.ok()) return model.status();
    return ImportOnnxModel(*model, options);
  }
  std::string Error() const {
    const auto imported = Import();
    return imported.ok() ? "no error"
                         : std::string(imported.status().message());
  }

 private:
  static void Declare(onnx::ValueInfoProto& value, const std::string& name,
                      const Dims& dims, int type) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const int64_t dim : dims) {
      auto& added = *tensor.mutable_shape()->add_dim();
      if (dim == -1) {
        added.set_dim_param("batch");
      } else {
        added.set_dim_value(dim);
      }
    }
  }

  onnx::ModelProto model_;
};

#define EXPECT_SAYS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ImportTest, FoldsWhatDependsOnConstantsAlone) {
  ModelBuilder model;
  model.Input("x", {2, 3, 4}).Ints("two", {2, -1});
  model.Node("Shape", {"x"}, "shape");
  model.Node("Reshape", {"x", "two"}, "y");
  model.Node("Reshape", {"y", "shape"}, "z");
  model.Output("z");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->graph.nodes.size(), 2) << GraphText(imported->graph);
  EXPECT_EQ(imported->graph.type(imported->graph.outputs[0]).dims,
            (Dims{2, 3, 4}));
}

TEST(ImportTest, SymbolicDimensionsAreBoundByName) {
  ModelBuilder model;
  model.Input("x", {-1, 3}).Output("y");
  model.Node("Relu", {"x"}, "y");
  ImportOptions options;
  options.dims = {{"batch", 7}};
  EXPECT_EQ(model.Import(options)->graph.values[0].type.dims, (Dims{7, 3}));
  options.dims = {{"bach", 7}};
  EXPECT_SAYS(std::string(model.Import(options).status().message()),
              "no input has it, expected one of batch");
  const auto without = model.Import();
  EXPECT_EQ(without->graph.values[0].type.dims, (Dims{1, 3}));
  ASSERT_EQ(without->notes.size(), 1);
  EXPECT_SAYS(without->notes[0], "(batch) has no size");
}

TEST(ImportTest, AnotherBatchReplacesTheFirstDimension) {
  ModelBuilder model;
  model.Input("x", {8, 3}).Input("scale", {1, 3}).Output("y");
  model.Node("Mul", {"x", "scale"}, "y");
  ImportOptions options;
  options.batch = 2;
  const auto imported = model.Import(options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.type(graph.inputs[0]).dims, (Dims{2, 3}));
  EXPECT_EQ(graph.type(graph.inputs[1]).dims, (Dims{1, 3}));
  EXPECT_EQ(graph.type(graph.outputs[0]).dims, (Dims{2, 3}));
}

TEST(ImportTest, AnUnknownOperatorIsListedAndTheRestRuns) {
  ModelBuilder model;
  model.Input("x", {4});
  model.Node("Relu", {"x"}, "a");
  model.Node("Mystery", {"a"}, "b");
  model.Node("Neg", {"b"}, "c");
  model.Node("Abs", {"a"}, "d");
  model.Output("c").Output("d");
  auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_EQ(imported->uncovered[0].node, "the_b");
  EXPECT_EQ(imported->uncovered[0].op, "Mystery");
  EXPECT_EQ(imported->graph.outputs.size(), 1);
  // Where the model says what b is, it becomes an input.
  model.Says("b", {4});
  imported = model.Import();
  EXPECT_EQ(imported->graph.outputs.size(), 2);
  EXPECT_EQ(imported->graph.inputs.size(), 2);
}

TEST(ImportTest, AbsentWeightsAreFilledFromTheSeed) {
  ModelBuilder model;
  model.Input("x", {2, 3}).Output("y");
  TensorProto& weights = *model.graph().add_initializer();
  weights.set_name("w");
  weights.set_data_type(TensorProto::FLOAT);
  weights.add_dims(3);
  weights.add_dims(5);
  weights.set_data_location(TensorProto::EXTERNAL);
  auto& entry = *weights.add_external_data();
  entry.set_key("location");
  entry.set_value("not_there.bin");
  model.Node("MatMul", {"x", "w"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->absent_constants, 1);
  EXPECT_EQ(imported->absent_bytes, 60);
  const Array x = RandomInput({proto::ELEMENT_F32, {2, 3}}, 1, 1);
  const auto y = RunReference(imported->graph, {x});
  EXPECT_EQ((*RunReference(model.Import()->graph, {x}))[0].reals,
            (*y)[0].reals);
  EXPECT_NE((*y)[0].reals[0], 0);
}

TEST(ImportTest, AConstantConditionChoosesABranch) {
  ModelBuilder model;
  model.Input("x", {2}).Output("y");
  TensorProto& flag = *model.graph().add_initializer();
  flag.set_name("flag");
  flag.set_data_type(TensorProto::BOOL);
  flag.add_int32_data(0);
  auto& node = model.Node("If", {"flag"}, "y");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    auto& inner = *attribute.mutable_g()->add_node();
    inner.set_op_type(branch[0] == 't' ? "Neg" : "Abs");
    inner.add_input("x");
    inner.add_output("inner");
    attribute.mutable_g()->add_output()->set_name("inner");
  }
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->graph.nodes.size(), 1);
  EXPECT_EQ(imported->graph.nodes[0].op, "abs");
}

// --- What is wrong is named
// ---------------------------------------------------

TEST(HostileTest, ACycleIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("b");
  model.Node("Add", {"x", "b"}, "a");
  model.Node("Relu", {"a"}, "b");
  EXPECT_SAYS(model.Error(), "node \"the_a\" (Add): is part of a cycle");
}

TEST(HostileTest, AnInputThatNobodyComputesIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Add", {"x", "ghost"}, "y");
  EXPECT_SAYS(model.Error(), "node \"the_y\" (Add): reads \"ghost\"");
}

TEST(HostileTest, AMissingOperandIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Add", {"x"}, "y");
  EXPECT_SAYS(model.Error(), "node \"the_y\" (Add): input 1 is missing");
}

TEST(HostileTest, AResultThatTwoNodesComputeIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Relu", {"x"}, "y");
  model.Node("Neg", {"x"}, "y");
  EXPECT_SAYS(model.Error(), "computes \"y\", as does node \"the_y\"");
}

TEST(HostileTest, TypesThatDisagreeAreNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Input("i", {4}, TensorProto::INT64).Output("y");
  model.Node("Add", {"x", "i"}, "y");
  EXPECT_SAYS(model.Error(), "types differ: f32[4] and i64[4]");
}

TEST(HostileTest, AnOutputOfAnotherShapeThanDeclaredIsNamed) {
  ModelBuilder model;
  model.Input("x", {4});
  model.Node("Relu", {"x"}, "y");
  model.Output("y");
  auto& type = *model.graph().mutable_output(0)->mutable_type();
  type.mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  type.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(5);
  EXPECT_SAYS(model.Error(), "output \"y\" is declared as f32[5]");
}

TEST(HostileTest, HugeAndNegativeDimensionsAreNamed) {
  ModelBuilder huge;
  huge.Input("x", {int64_t{1} << 40, int64_t{1} << 40}).Output("y");
  huge.Node("Relu", {"x"}, "y");
  EXPECT_SAYS(huge.Error(), "input \"x\"");
  ModelBuilder negative;
  negative.Input("x", {-3}).Output("y");
  negative.Node("Relu", {"x"}, "y");
  const auto imported = negative.Import();
  ASSERT_TRUE(imported.ok());
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_SAYS(imported->uncovered[0].reason, "a dimension of -3");
  ModelBuilder expanded;
  expanded.Input("x", {1}).Output("y");
  expanded.Ints("shape", {int64_t{1} << 62, int64_t{1} << 62});
  expanded.Node("Expand", {"x", "shape"}, "y");
  EXPECT_SAYS(expanded.Error(), "node \"the_y\" (Expand)");
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
  auto& alpha =
      *ModelBuilder::NodeOf(leaky, "LeakyRelu", {"a"}, "b").add_attribute();
  alpha.set_name("alpha");
  alpha.set_ref_attr_name("slope");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  onnx::FunctionProto& twice = model.Function("Twice", {"a", "unused"}, {"c"});
  for (const char* const name : {"slope", "first"}) {
    twice.add_attribute(name);
  }
  auto& first = ModelBuilder::NodeOf(twice, "Leaky", {"a"}, "b");
  first.set_domain("own");
  auto& half = *first.add_attribute();
  half.set_name("slope");
  half.set_f(.5);
  half.set_type(onnx::AttributeProto::FLOAT);
  auto& second = ModelBuilder::NodeOf(twice, "Leaky", {"b"}, "c");
  second.set_domain("own");
  auto& handed = *second.add_attribute();
  handed.set_name("slope");
  handed.set_ref_attr_name("slope");
  handed.set_type(onnx::AttributeProto::FLOAT);
  return model;
}

// ONNX 1.12 has no cases of it.
TEST(LpPoolTest, IsTheRootOfASumOfPowers) {
  ModelBuilder model;
  model.Input("x", {1, 1, 2, 3}).Output("y").Output("z");
  auto& pool = model.Node("LpPool", {"x"}, "y");
  ModelBuilder::SetInts(pool, "kernel_shape", {2, 2});
  ModelBuilder::SetInts(pool, "pads", {0, 1, 0, 0});
  ModelBuilder::Set(model.Node("GlobalLpPool", {"x"}, "z"), "p", 3);
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(imported->uncovered.empty());
  const auto outputs = RunReference(
      imported->graph,
      {Array::Reals(proto::ELEMENT_F32, {1, 1, 2, 3}, {3, -1, 2, -4, 1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // The padding counts as zeros.
  EXPECT_NEAR((*outputs)[0].At(0), 5, 1e-5);
  EXPECT_NEAR((*outputs)[0].At(1), std::sqrt(27), 1e-5);
  EXPECT_NEAR((*outputs)[0].At(2), std::sqrt(10), 1e-5);
  EXPECT_NEAR((*outputs)[1].At(0), std::cbrt(109), 1e-5);

  ModelBuilder wrong;
  wrong.Input("x", {1, 1, 2, 3}).Output("y");
  auto& zero = wrong.Node("LpPool", {"x"}, "y");
  ModelBuilder::SetInts(zero, "kernel_shape", {2, 2});
  ModelBuilder::Set(zero, "p", 0);
  EXPECT_SAYS(wrong.Error(), "p is 0; expected 1 or more");
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

TEST(FunctionsTest, ThatCallThemselvesOrDoubleWithoutEndAreErrors) {
  ModelBuilder circle;
  circle.Input("x", {1}).Output("y");
  onnx::FunctionProto& self = circle.Function("Self", {"a"}, {"b"});
  ModelBuilder::NodeOf(self, "Self", {"a"}, "b").set_domain("own");
  circle.Call("Self", {"x"}, "y");
  EXPECT_SAYS(circle.Error(), "calls of functions are more than 64 deep");

  ModelBuilder doubling;
  doubling.Input("x", {1}).Output("y");
  for (int i = 0; i < 40; ++i) {
    onnx::FunctionProto& function =
        doubling.Function(absl::StrCat("f", i), {"a"}, {"c"});
    const std::string next = absl::StrCat("f", i + 1);
    ModelBuilder::NodeOf(function, next, {"a"}, "b").set_domain("own");
    ModelBuilder::NodeOf(function, next, {"b"}, "c").set_domain("own");
  }
  onnx::FunctionProto& last = doubling.Function("f40", {"a"}, {"c"});
  ModelBuilder::NodeOf(last, "Relu", {"a"}, "c");
  doubling.Call("f0", {"x"}, "y");
  EXPECT_SAYS(doubling.Error(), "more than 1048576 nodes");

  ModelBuilder many = ModelWithFunctions();
  many.Call("Leaky", {"x", "x"}, "z");
  EXPECT_SAYS(many.Error(), "2 inputs and 1 outputs; expected at most the 1");
}

TEST(HostileTest, AttributesOutOfRangeAreErrors) {
  const auto error = [](const std::function<void(ModelBuilder&)>& build) {
    ModelBuilder model;
    model.Input("x", {1, 2, 8, 8}).Input("w", {4, 2, 3, 3}).Output("y");
    build(model);
    return model.Error();
  };
  const int64_t huge = int64_t{1} << 62;
  for (const char* name : {"strides", "dilations", "pads"}) {
    for (const int64_t value : {huge, -huge, int64_t{0}}) {
      if (value == 0 && std::string(name) == "pads") continue;
      const int count = std::string(name) == "pads" ? 4 : 2;
      EXPECT_SAYS(error([&](ModelBuilder& model) {
                    auto& node = model.Node("Conv", {"x", "w"}, "y");
                    ModelBuilder::SetInts(node, name, Dims(count, value));
                  }),
                  "node \"the_y\" (Conv)");
      EXPECT_SAYS(error([&](ModelBuilder& model) {
                    auto& node = model.Node("MaxPool", {"x"}, "y");
                    ModelBuilder::SetInts(node, "kernel_shape", {2, 2});
                    ModelBuilder::SetInts(node, name, Dims(count, value));
                  }),
                  "node \"the_y\" (MaxPool)");
    }
  }
  EXPECT_SAYS(error([&](ModelBuilder& model) {
                auto& node = model.Node("Softmax", {"x"}, "y");
                ModelBuilder::Set(node, "axis", huge);
              }),
              "axis 4611686018427387904 of 4 dimensions");
  EXPECT_SAYS(error([&](ModelBuilder& model) {
                auto& node = model.Node("Transpose", {"x"}, "y");
                ModelBuilder::SetInts(node, "perm", {0, 1, 1, huge});
              }),
              "is no order of the dimensions");
}

TEST(HostileTest, TensorsWhoseBytesDoNotFitAreNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Relu", {"x"}, "y");
  TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(1000);
  tensor.set_raw_data("four");
  EXPECT_SAYS(model.Error(), "tensor \"w\": 4 bytes; expected 4000");
}

TEST(HostileTest, FilesOutsideTheModelsFolderAreNotRead) {
  const std::string folder = JoinPath(testing::TempDir(), "model");
  const std::string secret = JoinPath(testing::TempDir(), "secret.bin");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(secret, std::string(16, 'x')).ok());
  const std::string link = JoinPath(folder, "link.bin");
  unlink(link.c_str());
  ASSERT_EQ(symlink(secret.c_str(), link.c_str()), 0);
  for (const std::string& location :
       {std::string("../secret.bin"), secret, std::string("link.bin"),
        std::string("a/../../secret.bin"), std::string("")}) {
    ModelBuilder model;
    model.Input("x", {4}).Output("y");
    model.Node("Add", {"x", "w"}, "y");
    TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(TensorProto::FLOAT);
    tensor.add_dims(4);
    tensor.set_data_location(TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    const std::string path = JoinPath(folder, "model.onnx");
    ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
    const auto imported = ImportOnnx(path);
    ASSERT_FALSE(imported.ok()) << location;
    EXPECT_SAYS(std::string(imported.status().message()),
                "expected a file below the model's folder");
  }
}

TEST(HostileTest, TruncatedAndDamagedFilesAreErrorsOrModels) {
  const auto whole = ReadFile("graph/testdata/tiny_resnet_bn.onnx");
  ASSERT_TRUE(whole.ok());
  Rng rng(7);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = *whole;
    if (i % 2 == 0) {
      damaged.resize(rng.UniformInt(static_cast<int64_t>(damaged.size())));
    } else {
      for (int k = 0; k < 8; ++k) {
        // The nodes are at the end.
        const int64_t at =
            static_cast<int64_t>(damaged.size()) - 1 -
            rng.UniformInt(std::min<int64_t>(4000, damaged.size()));
        damaged[at] = static_cast<char>(rng());
      }
    }
    const auto model = ParseOnnxModel(damaged, "");
    if (!model.ok()) continue;
    const auto imported = ImportOnnxModel(*model);
    if (imported.ok()) {
      EXPECT_TRUE(Validate(imported->graph).ok());
    }
  }
}

TEST(HostileTest, ManyNodesAreImported) {
  ModelBuilder model;
  model.Input("x0", {4});
  constexpr int kNodes = 100'000;
  for (int i = 0; i < kNodes; ++i) {
    model.Node("Relu", {absl::StrCat("x", i)}, absl::StrCat("x", i + 1));
  }
  model.Output(absl::StrCat("x", kNodes));
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.nodes.size(), kNodes);
}

}  // namespace
}  // namespace optrail::graph
