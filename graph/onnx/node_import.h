#ifndef OPTRAIL_GRAPH_ONNX_NODE_IMPORT_H_
#define OPTRAIL_GRAPH_ONNX_NODE_IMPORT_H_

// NodeImport is what a rule for one ONNX operator works with: the node's
// operands as values of the graph, its attributes, and Emit, which adds nodes.
//
//   // Sum: any number of operands, added up.
//   std::vector<int> Sum(NodeImport& node) {
//     int sum = node.In(0);
//     for (int i = 1; i < node.inputs(); ++i) {
//       sum = node.Emit("add", {sum, node.In(i)});
//     }
//     return {sum};
//   }
//
// The first error sticks: what is emitted after it does nothing and returns
// kFailed, so that rules need no error paths of their own.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {

class NodeImport {
 public:
  static constexpr int kFailed = -2;

  // `operands` are values of `graph`, -1 for one that is left out. `work` is
  // how many elements may still be computed ahead.
  NodeImport(Graph& graph, const OnnxNode& node, std::vector<int> operands,
             int64_t opset, int64_t& work);

  const OnnxNode& onnx() const { return node_; }
  int64_t opset() const { return opset_; }
  int inputs() const { return static_cast<int>(operands_.size()); }
  // Whether result i is read or named at all.
  bool Wants(int i) const {
    return i < static_cast<int>(node_.outputs.size()) &&
           !node_.outputs[i].empty();
  }

  // Operands. In() fails for one that is not there, InOr() returns -1.
  bool Has(int i) const { return i < inputs() && operands_[i] >= 0; }
  int In(int i);
  int InOr(int i) const { return Has(i) ? operands_[i] : -1; }
  // Copies, since values move when nodes are added.
  TensorType type(int value) const;
  Dims dims(int value) const { return type(value).dims; }
  int rank(int value) const { return static_cast<int>(dims(value).size()); }

  // What a constant holds; fails, as not covered, for what is no constant.
  Array Known(int value, absl::string_view what);
  Dims KnownInts(int i, absl::string_view what);
  // The integers of a constant, nothing for what is no constant.
  Dims KnownOrNothing(int value) const;

  // Attributes.
  bool HasAttribute(absl::string_view name) const;
  int64_t Int(absl::string_view name, int64_t otherwise) const;
  double Real(absl::string_view name, double otherwise) const;
  std::string Text(absl::string_view name, std::string otherwise) const;
  Dims Ints(absl::string_view name, Dims otherwise = {}) const;
  // The type that the attribute names by its number in TensorProto.DataType;
  // fails, as not covered, for one that is no number here.
  proto::ElementType Type(absl::string_view name, proto::ElementType otherwise);
  // In [0, rank); fails outside [-rank, rank).
  int64_t Axis(int64_t axis, int64_t rank);
  Dims Axes(const Dims& axes, int64_t rank);  // sorted, each once

  // Adds a node, or computes it now where all of its inputs are known. Returns
  // its first result, others follow.
  int Emit(std::string op, std::vector<int> inputs, Attributes attributes = {});
  int Constant(const Array& array);
  // The tensor's own bytes: functions and loops name one any number of times.
  int Shared(const OnnxTensor& tensor);
  // Returns whether a rule may make so many elements that the file does not
  // hold; fails, as not covered, where those of all nodes are too many.
  bool MayMake(int64_t elements);
  // One element of the type of `like`.
  int Scalar(int like, double value);
  int IntConstant(const Dims& values, const Dims& dims);

  // Nothing is added where nothing changes.
  int Reshape(int value, const Dims& dims);
  int Transpose(int value, const Dims& perm);
  int Expand(int value, const Dims& dims);
  int Cast(int value, proto::ElementType type);
  int Slice(int value, int64_t axis, int64_t begin, int64_t size);
  int Reduce(std::string op, int value, const Dims& axes, bool keepdims);
  int LogSoftmax(int value, int64_t axis);
  // `value` [n] as [1, n, 1, ...], beside a tensor of `rank` dimensions.
  int AlongAxis(int value, int64_t axis, int64_t rank);

  // InvalidArgument: the model is wrong. Unimplemented: it is not covered.
  void Fail(absl::Status status);
  void Wrong(absl::string_view why) { Fail(absl::InvalidArgumentError(why)); }
  void NotCovered(absl::string_view why) {
    Fail(absl::UnimplementedError(why));
  }
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

 private:
  const OnnxAttribute* Find(absl::string_view name) const;
  bool CanFold(const std::vector<int>& inputs, int first, int count) const;
  int Fold(int first_value);

  Graph& graph_;
  const OnnxNode& node_;
  const std::vector<int> operands_;
  const int64_t opset_;
  int64_t& work_;
  int emitted_ = 0;
  absl::Status status_;
};

// Returns a value for each result.
using ImportRule = std::function<std::vector<int>(NodeImport&)>;
using ImportRules = std::map<std::string, ImportRule, std::less<>>;

// Each family in a file of its own.
void AddConstantRules(ImportRules& rules);
void AddDetRule(ImportRules& rules);
void AddElementwiseRules(ImportRules& rules);
void AddShapeRules(ImportRules& rules);
void AddIndexRules(ImportRules& rules);
void AddReduceRules(ImportRules& rules);
void AddLayerRules(ImportRules& rules);
void AddLossRules(ImportRules& rules);
void AddNormRules(ImportRules& rules);
void AddQuantiseRules(ImportRules& rules);
void AddRecurrentRules(ImportRules& rules);
void AddResizeRules(ImportRules& rules);
void AddSampleRules(ImportRules& rules);
void AddSignalRules(ImportRules& rules);
void AddUniqueRule(ImportRules& rules);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_NODE_IMPORT_H_
