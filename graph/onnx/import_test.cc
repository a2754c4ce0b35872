#include "graph/onnx/import.h"

#include <gtest/gtest.h>

#include "graph/ir/graph_text.h"
#include "graph/onnx/testing/model_builder.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

using onnx::TensorProto;

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
  const absl::Status covered = CheckCovered(*imported, "m.onnx");
  EXPECT_EQ(covered.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_SAYS(std::string(covered.message()),
              "m.onnx: 1 not covered, the first: node \"the_b\" (Mystery): ");
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

}  // namespace
}  // namespace optrail::graph
