#include "graph/onnx/node_import.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// Larger constants stay nodes: a model's file need not grow by what a few bytes
// of it expand to.
constexpr int64_t kMostFoldedElements = 1 << 20;
// The same where results take more work than they have elements.
constexpr int64_t kMostContractedElements = 1 << 12;

// A constant that a rule makes of a few numbers has no more.
constexpr int64_t kMostMadeElements = 1 << 24;

}  // namespace

NodeImport::NodeImport(Graph& graph, const OnnxNode& node,
                       std::vector<int> operands, int64_t opset, int64_t& work)
    : graph_(graph),
      node_(node),
      operands_(std::move(operands)),
      opset_(opset),
      work_(work) {}

void NodeImport::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

int NodeImport::In(int i) {
  if (Has(i)) return operands_[i];
  Wrong(absl::StrCat("input ", i, " is missing"));
  return kFailed;
}

TensorType NodeImport::type(int value) const {
  return value < 0 ? TensorType{proto::ELEMENT_F32, {}}
                   : graph_.values[value].type;
}

Array NodeImport::Known(int value, absl::string_view what) {
  if (value < 0) return Array::Zeros({proto::ELEMENT_I64, {}});
  const Value& v = graph_.values[value];
  if (v.constant != nullptr && !v.constant->absent()) {
    return ConstantArray(v.type, *v.constant);
  }
  NotCovered(absl::StrCat(what, " (\"", v.name, "\") is no constant"));
  return Array::Zeros({proto::ELEMENT_I64, {}});
}

Dims NodeImport::KnownInts(int i, absl::string_view what) {
  const int value = In(i);
  if (!ok()) return {};
  if (IsReal(type(value).type)) {
    Wrong(absl::StrCat(what, " is ", TypeText(type(value)),
                       "; expected integers"));
    return {};
  }
  return Known(value, what).integers;
}

Dims NodeImport::KnownOrNothing(int value) const {
  const Value& v = graph_.values[value];
  if (v.constant == nullptr || v.constant->absent()) return {};
  return ConstantArray(v.type, *v.constant).integers;
}

const OnnxAttribute* NodeImport::Find(absl::string_view name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

bool NodeImport::HasAttribute(absl::string_view name) const {
  return Find(name) != nullptr;
}
int64_t NodeImport::Int(absl::string_view name, int64_t otherwise) const {
  const OnnxAttribute* const found = Find(name);
  return found == nullptr ? otherwise : found->integer;
}
double NodeImport::Real(absl::string_view name, double otherwise) const {
  const OnnxAttribute* const found = Find(name);
  return found == nullptr ? otherwise : found->real;
}
std::string NodeImport::Text(absl::string_view name,
                             std::string otherwise) const {
  const OnnxAttribute* const found = Find(name);
  return found == nullptr ? otherwise : found->text;
}
Dims NodeImport::Ints(absl::string_view name, Dims otherwise) const {
  const OnnxAttribute* const found = Find(name);
  return found == nullptr ? otherwise : found->integers;
}

proto::ElementType NodeImport::Type(absl::string_view name,
                                    proto::ElementType otherwise) {
  static constexpr std::pair<int64_t, proto::ElementType> kTypes[] = {
      {1, proto::ELEMENT_F32},   {2, proto::ELEMENT_U8},
      {3, proto::ELEMENT_I8},    {4, proto::ELEMENT_U16},
      {5, proto::ELEMENT_I16},   {6, proto::ELEMENT_I32},
      {7, proto::ELEMENT_I64},   {9, proto::ELEMENT_BOOL},
      {10, proto::ELEMENT_F16},  {11, proto::ELEMENT_F64},
      {12, proto::ELEMENT_U32},  {13, proto::ELEMENT_U64},
      {16, proto::ELEMENT_BF16},
  };
  const OnnxAttribute* const found = Find(name);
  if (found == nullptr) return otherwise;
  for (const auto& [number, type] : kTypes) {
    if (number == found->integer) return type;
  }
  NotCovered(absl::StrCat(name, " is element type ", found->integer));
  return otherwise;
}

int64_t NodeImport::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Wrong(absl::StrCat("axis ", axis, " of ", rank, " dimensions"));
  return 0;
}

Dims NodeImport::Axes(const Dims& axes, int64_t rank) {
  Dims result;
  for (const int64_t axis : axes) result.push_back(Axis(axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    Wrong(absl::StrCat("axes [", absl::StrJoin(axes, ","), "] name one twice"));
  }
  return result;
}

bool NodeImport::CanFold(const std::vector<int>& inputs, int first,
                         int count) const {
  int64_t elements = 0;
  for (const int input : inputs) {
    if (input < 0) continue;
    const Value& value = graph_.values[input];
    if (value.constant == nullptr || value.constant->absent()) return false;
    elements += Elements(value.type.dims);
  }
  for (int i = 0; i < count; ++i) {
    elements += Elements(graph_.values[first + i].type.dims);
  }
  const OpKind kind = FindOp(graph_.nodes.back().op)->kind;
  const bool is_light = kind == OpKind::kElementwise ||
                        kind == OpKind::kMovement || kind == OpKind::kReduction;
  return elements <=
             (is_light ? kMostFoldedElements : kMostContractedElements) &&
         elements <= work_;
}

// The last node's results become constants and the node goes.
int NodeImport::Fold(int first) {
  const Node node = graph_.nodes.back();
  std::vector<Array> arrays;
  arrays.reserve(node.inputs.size());
  ArrayList inputs;
  for (const int input : node.inputs) {
    if (input < 0) {
      inputs.push_back(nullptr);
      continue;
    }
    arrays.push_back(
        ConstantArray(graph_.type(input), *graph_.values[input].constant));
    work_ -= arrays.back().elements();
    inputs.push_back(&arrays.back());
  }
  std::vector<TensorType> types;
  for (const int output : node.outputs) types.push_back(graph_.type(output));
  auto results = FindOp(node.op)->evaluate(node, inputs, types);
  if (!results.ok()) {
    Wrong(results.status().message());
    return kFailed;
  }
  graph_.nodes.pop_back();
  for (size_t i = 0; i < results->size(); ++i) {
    Value& value = graph_.values[first + i];
    work_ -= (*results)[i].elements();
    value.producer = -1;
    value.constant = std::make_shared<const optrail::graph::Constant>(
        optrail::graph::Constant{
            std::make_shared<const std::string>((*results)[i].Encode())});
  }
  return first;
}

int NodeImport::Emit(std::string op, std::vector<int> inputs,
                     Attributes attributes) {
  if (!ok()) return kFailed;
  const std::string name =
      emitted_ == 0 ? node_.name : absl::StrCat(node_.name, "/", emitted_);
  ++emitted_;
  const absl::StatusOr<int> first = graph_.AddNode(
      name, std::move(op), std::move(inputs), std::move(attributes));
  if (!first.ok()) {
    Wrong(first.status().message());
    return kFailed;
  }
  const Node& added = graph_.nodes.back();
  if (CanFold(added.inputs, *first, static_cast<int>(added.outputs.size()))) {
    return Fold(*first);
  }
  return *first;
}

int NodeImport::Constant(const Array& array) {
  if (!ok()) return kFailed;
  return graph_.AddConstant(absl::StrCat(node_.name, "/constant"), array);
}

int NodeImport::Shared(const OnnxTensor& tensor) {
  if (!ok()) return kFailed;
  return graph_.AddConstant(absl::StrCat(node_.name, "/constant"), tensor.type,
                            tensor.constant);
}

bool NodeImport::MayMake(int64_t elements) {
  if (!ok()) return false;
  if (elements > kMostMadeElements || elements > work_) {
    NotCovered(absl::StrCat("would make a constant of ", elements,
                            " elements; at most ", kMostMadeElements,
                            " are made, and so many for all nodes together "
                            "that ",
                            work_, " are left"));
    return false;
  }
  work_ -= elements;
  return true;
}

int NodeImport::Scalar(int like, double value) {
  Array array = Array::Zeros({type(like).type, {}});
  if (array.is_real()) {
    array.reals[0] = value;
  } else {
    array.integers[0] = TruncateTo(array.type.type, value);
  }
  return Constant(array);
}

int NodeImport::IntConstant(const Dims& values, const Dims& dims) {
  if (!ok()) return kFailed;
  return Constant(Array::Integers(proto::ELEMENT_I64, dims, values));
}

int NodeImport::Reshape(int value, const Dims& to) {
  if (!ok() || dims(value) == to) return value;
  return Emit("reshape", {value}, {{"dims", to}});
}

int NodeImport::Transpose(int value, const Dims& perm) {
  Dims same(rank(value));
  std::iota(same.begin(), same.end(), 0);
  if (!ok() || perm == same) return value;
  return Emit("transpose", {value}, {{"perm", perm}});
}

int NodeImport::Expand(int value, const Dims& to) {
  if (!ok() || dims(value) == to) return value;
  return Emit("expand", {value}, {{"dims", to}});
}

int NodeImport::Cast(int value, proto::ElementType to) {
  if (!ok() || type(value).type == to) return value;
  return Emit("cast", {value}, {{"to", static_cast<int64_t>(to)}});
}

int NodeImport::Slice(int value, int64_t axis, int64_t begin, int64_t size) {
  if (!ok()) return kFailed;
  Dims sizes = dims(value), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (begin == 0 && sizes[axis] == size) return value;
  starts[axis] = begin;
  sizes[axis] = size;
  return Emit("slice", {value},
              {{"starts", starts}, {"steps", steps}, {"dims", sizes}});
}

int NodeImport::Reduce(std::string op, int value, const Dims& axes,
                       bool keepdims) {
  return Emit(std::move(op), {value},
              {{"axes", axes}, {"keepdims", static_cast<int64_t>(keepdims)}});
}

int NodeImport::LogSoftmax(int value, int64_t axis) {
  const int most = Reduce("reduce_max", value, {axis}, true);
  const int centred = Emit("sub", {value, most});
  const int sum = Reduce("reduce_sum", Emit("exp", {centred}), {axis}, true);
  return Emit("sub", {centred, Emit("log", {sum})});
}

int NodeImport::AlongAxis(int value, int64_t axis, int64_t rank) {
  if (!ok()) return kFailed;
  const int64_t at = Axis(axis, rank);
  if (!ok()) return kFailed;
  Dims to(rank, 1);
  to[at] = Elements(dims(value));
  return Reshape(value, to);
}

}  // namespace optrail::graph
