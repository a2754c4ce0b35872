#ifndef OPTRAIL_GRAPH_ONNX_TESTING_MODEL_BUILDER_H_
#define OPTRAIL_GRAPH_ONNX_TESTING_MODEL_BUILDER_H_

// ModelBuilder makes ONNX models for tests, node by node.
//
//   ModelBuilder model;
//   model.Input("x", {2}).Output("y");
//   model.Node("Relu", {"x"}, "y");
//   EXPECT_SAYS(model.Error(), "no error");

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/graph.h"
#include "graph/onnx/import.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

#define EXPECT_SAYS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace optrail::graph {

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model_.add_opset_import()->set_version(opset);
  }

  ModelBuilder& Input(const std::string& name, const Dims& dims,
                      int type = onnx::TensorProto::FLOAT) {
    Declare(*graph().add_input(), name, dims, type);
    return *this;
  }
  ModelBuilder& Output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  ModelBuilder& Says(const std::string& name, const Dims& dims) {
    Declare(*graph().add_value_info(), name, dims, onnx::TensorProto::FLOAT);
    return *this;
  }
  ModelBuilder& Ints(const std::string& name, const Dims& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }
  onnx::NodeProto& Node(const std::string& op,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    return NodeOf(graph(), op, inputs, output);
  }
  // The same in a function, or in a graph inside of a node.
  template <class Owner>
  static onnx::NodeProto& NodeOf(Owner& owner, const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const std::string& output) {
    onnx::NodeProto& node = *owner.add_node();
    node.set_op_type(op);
    node.set_name(absl::StrCat("the_", output));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  // A constant, e.g. the condition of an If.
  template <class Owner>
  static void TrueIn(Owner& owner, const std::string& name) {
    auto& attribute = *NodeOf(owner, "Constant", {}, name).add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(onnx::TensorProto::BOOL);
    attribute.mutable_t()->add_int32_data(1);
  }
  // A graph inside of a node, e.g. a branch.
  static onnx::GraphProto& GraphOf(onnx::NodeProto& node,
                                   const std::string& name,
                                   const std::string& output) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->add_output()->set_name(output);
    return *attribute.mutable_g();
  }
  // The attribute of a function's call that stands here.
  static void Refer(onnx::NodeProto& node, const std::string& name,
                    const std::string& to,
                    onnx::AttributeProto::AttributeType type) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_ref_attr_name(to);
    attribute.set_type(type);
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
  template <class Owner>
  static onnx::NodeProto& CallIn(Owner& owner, const std::string& function,
                                 const std::vector<std::string>& inputs,
                                 const std::string& output) {
    onnx::NodeProto& node = NodeOf(owner, function, inputs, output);
    node.set_domain("own");
    return node;
  }
  onnx::NodeProto& Call(const std::string& function,
                        const std::vector<std::string>& inputs,
                        const std::string& output) {
    return CallIn(graph(), function, inputs, output);
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

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_TESTING_MODEL_BUILDER_H_
