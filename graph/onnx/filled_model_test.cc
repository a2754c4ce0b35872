#include "graph/onnx/filled_model.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "graph/onnx/import.h"
#include "graph/reference/reference.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

namespace optrail::graph {
namespace {

// y = x * w, w being in a file that is not there.
onnx::ModelProto ModelWithoutWeights() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto declare = [](onnx::ValueInfoProto& value, const char* name,
                          int64_t rows, int64_t cols) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(rows);
    type.mutable_shape()->add_dim()->set_dim_value(cols);
  };
  declare(*graph.add_input(), "x", 3, 40);
  declare(*graph.add_output(), "y", 3, 7);
  for (const char* name : {"unused", "w"}) {
    onnx::TensorProto& w = *graph.add_initializer();
    w.set_name(name);
    w.set_data_type(onnx::TensorProto::FLOAT);
    w.add_dims(40);
    w.add_dims(7);
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& location = *w.add_external_data();
    location.set_key("location");
    location.set_value("not_there");
  }
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("MatMul");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  return model;
}

TEST(FilledModelTest, ComputesWhatTheImportWithAFillerDoes) {
  const std::string folder = testing::TempDir();
  const std::string path = JoinPath(folder, "absent.onnx");
  ASSERT_TRUE(
      WriteFileAtomically(path, ModelWithoutWeights().SerializeAsString())
          .ok());
  ASSERT_TRUE(WriteFilledModel(path, 5, folder).ok());
  ImportOptions options;
  options.seed = 5;
  const auto absent = ImportOnnx(path, options);
  const auto filled = ImportOnnx(JoinPath(folder, "model.onnx"));
  ASSERT_TRUE(absent.ok() && filled.ok());
  EXPECT_EQ(absent->absent_constants, 1);
  EXPECT_EQ(filled->absent_constants, 0);
  const std::vector<Array> inputs = SeededInputs(absent->graph, 1);
  const auto expected = RunReference(absent->graph, inputs);
  const auto ours = RunReference(filled->graph, inputs);
  ASSERT_TRUE(expected.ok() && ours.ok());
  EXPECT_EQ((*ours)[0].reals, (*expected)[0].reals);
}

TEST(FilledModelTest, NamesAFileThatIsNoModel) {
  const std::string path = JoinPath(testing::TempDir(), "text.onnx");
  ASSERT_TRUE(WriteFileAtomically(path, "no model").ok());
  const absl::Status status = WriteFilledModel(path, 1, testing::TempDir());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("text.onnx"), std::string::npos);
}

}  // namespace
}  // namespace optrail::graph
