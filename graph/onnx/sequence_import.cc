// Sequences: lists of tensors, as exporters write for parts of a tensor and for
// stacks of results. How long they are, and what is taken from them, must be
// known when the model is imported.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/node_import.h"
#include "graph/onnx/node_order.h"

namespace optrail::graph {
namespace {

using Sequence = std::vector<int>;

constexpr int64_t kMostInSequence = 4096;
// Each node has a sequence of its own, which counts as so many elements for
// each of its tensors among those that a model may have made.
constexpr int64_t kElementsOfEntry = 16;

// The place that operand i names among `size` ones, else `otherwise`.
int64_t PlaceOf(NodeImport& node, int i, int64_t size, int64_t otherwise) {
  if (!node.Has(i)) return otherwise;
  const Dims place = node.KnownInts(i, "the place");
  if (!node.ok()) return 0;
  if (place.size() == 1 && place[0] >= -size && place[0] < size) {
    return place[0] < 0 ? place[0] + size : place[0];
  }
  node.Wrong(absl::StrCat("expected one place in a sequence of ", size));
  return 0;
}

// How many of the tensor's rows along the axis each part gets.
Dims PartsOf(NodeImport& node, int64_t size) {
  if (!node.Has(1)) return Dims(std::min(size, kMostInSequence + 1), 1);
  Dims parts = node.KnownInts(1, "the split");
  if (!node.ok() || node.rank(node.In(1)) != 0) return parts;
  if (parts.size() != 1 || parts[0] < 1) {
    node.Wrong("the split is no positive number");
    return {};
  }
  const int64_t each = parts[0];
  parts.clear();
  for (int64_t begin = 0; begin < size; begin += std::min(each, size - begin)) {
    if (static_cast<int64_t>(parts.size()) > kMostInSequence) break;
    parts.push_back(std::min(each, size - begin));
  }
  return parts;
}

Sequence Split(NodeImport& node) {
  const int x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  if (!node.ok()) return {};
  const Dims dims = node.dims(x);
  const Dims sizes = PartsOf(node, dims[axis]);
  if (static_cast<int64_t>(sizes.size()) > kMostInSequence) {
    node.NotCovered(absl::StrCat("more than ", kMostInSequence, " parts"));
  }
  int64_t begin = 0;
  Sequence parts;
  for (const int64_t size : sizes) {
    if (!node.ok()) return {};
    if (size < 0 || size > dims[axis] - begin) {
      node.Wrong(absl::StrCat("the parts do not add up to the ", dims[axis],
                              " rows that there are"));
      return {};
    }
    int part = node.Slice(x, axis, begin, size);
    if (!node.Has(1) && node.Int("keepdims", 1) == 0) {
      Dims without = dims;
      without.erase(without.begin() + axis);
      part = node.Reshape(part, without);
    }
    parts.push_back(part);
    begin += size;
  }
  if (node.ok() && begin != dims[axis]) {
    node.Wrong(absl::StrCat("the parts have ", begin, " rows of ", dims[axis]));
  }
  return parts;
}

int Concat(NodeImport& node, Sequence parts) {
  if (parts.empty()) node.Wrong("the sequence is empty");
  if (!node.ok()) return NodeImport::kFailed;
  const bool is_new = node.Int("new_axis", 0) != 0;
  const int64_t axis =
      node.Axis(node.Int("axis", 0), node.rank(parts[0]) + (is_new ? 1 : 0));
  for (int& part : parts) {
    if (!is_new) break;
    Dims dims = node.dims(part);
    if (static_cast<int64_t>(dims.size()) < axis) {
      node.Wrong("the tensors of the sequence have different ranks");
    }
    if (!node.ok()) return NodeImport::kFailed;
    dims.insert(dims.begin() + axis, 1);
    part = node.Reshape(part, dims);
  }
  return parts.size() == 1 ? parts[0]
                           : node.Emit("concat", parts, {{"axis", axis}});
}

bool GivesTensor(const std::string& op) {
  return op == "ConcatFromSequence" || op == "SequenceAt" ||
         op == "SequenceLength";
}

bool ReadsSequence(const std::string& op) {
  return GivesTensor(op) || op == "SequenceErase" || op == "SequenceInsert";
}

// A tensor that comes of a sequence.
int Taken(NodeImport& node, const Sequence& from) {
  const int64_t size = static_cast<int64_t>(from.size());
  if (!node.ok()) return NodeImport::kFailed;
  if (node.onnx().op == "SequenceLength") return node.IntConstant({size}, {});
  if (node.onnx().op == "ConcatFromSequence") return Concat(node, from);
  node.In(1);
  const int64_t place = PlaceOf(node, 1, size, 0);
  return node.ok() ? from[place] : NodeImport::kFailed;
}

// A sequence made of tensors, or of another one.
Sequence Made(NodeImport& node, Sequence from) {
  const std::string& op = node.onnx().op;
  if (!node.ok()) return {};
  const int64_t size = static_cast<int64_t>(from.size());
  if (op == "SplitToSequence") return Split(node);
  if (op == "SequenceConstruct") {
    for (int i = 0; i < node.inputs(); ++i) from.push_back(node.In(i));
  } else if (op == "SequenceErase") {
    if (size == 0) node.Wrong("the sequence is empty");
    const int64_t place = PlaceOf(node, 1, size, size - 1);
    if (node.ok()) from.erase(from.begin() + place);
  } else if (op == "SequenceInsert") {
    const int tensor = node.In(1);
    if (node.ok() && size > 0 &&
        node.type(tensor).type != node.type(from[0]).type) {
      node.Wrong(absl::StrCat("puts ", TypeText(node.type(tensor)),
                              " into a sequence of ",
                              TypeText(node.type(from[0]))));
    }
    // Behind the last one is a place, too.
    const bool is_end =
        node.Has(2) && node.KnownInts(2, "the place") == Dims{size};
    const int64_t place = is_end ? size : PlaceOf(node, 2, size, size);
    if (node.ok()) from.insert(from.begin() + place, tensor);
  }
  return from;
}

}  // namespace

bool Importer::IsOfSequences(const OnnxNode& node) {
  return node.domain.empty() &&
         std::find(std::begin(kSequenceOperators), std::end(kSequenceOperators),
                   node.op) != std::end(kSequenceOperators);
}

const std::vector<int>* Importer::SequenceOf(const OnnxNode& node, size_t i,
                                             const Scope& scope) {
  if (i >= node.inputs.size()) return nullptr;
  const Named* const found = scope.Find(node.inputs[i]);
  return found == nullptr ? nullptr : found->sequence.get();
}

absl::Status Importer::AddSequenceNode(const OnnxNode& node,
                                       const std::vector<int>& operands,
                                       Scope& scope) {
  const std::vector<int>* const from = SequenceOf(node, 0, scope);
  if (!IsOfSequences(node)) {
    if (node.op == "Identity" && node.domain.empty() && from != nullptr) {
      const Named same = *scope.Find(node.inputs[0]);
      if (!node.outputs.empty()) scope.Set(node.outputs[0], same);
      return absl::OkStatus();
    }
    NotCovered(node, scope, "reads a sequence");
    return absl::OkStatus();
  }
  const size_t nodes = graph_.nodes.size();
  NodeImport import(graph_, node, operands,
                    node.opset > 0 ? node.opset : model_.opset, work_);
  const Sequence before = from == nullptr ? Sequence() : *from;
  if (from == nullptr && ReadsSequence(node.op)) {
    import.Wrong("input 0 is no sequence");
  }
  const bool is_tensor = GivesTensor(node.op);
  const int tensor = is_tensor ? Taken(import, before) : -1;
  const Sequence made = is_tensor ? Sequence() : Made(import, before);
  if (static_cast<int64_t>(made.size()) > kMostInSequence) {
    import.NotCovered(
        absl::StrCat("a sequence of more than ", kMostInSequence));
  }
  import.MayMake(kElementsOfEntry * static_cast<int64_t>(made.size()));
  if (!import.ok()) {
    if (import.status().code() != absl::StatusCode::kUnimplemented) {
      return AtNode(node, import.status());
    }
    NotCovered(node, scope, std::string(import.status().message()));
    return absl::OkStatus();
  }
  if (is_tensor) return Bind(node, {tensor}, nodes, scope);
  if (!node.outputs.empty()) {
    scope.Set(node.outputs[0],
              {-1, absl::StrCat(Quoted(node.outputs[0]), " is a sequence"),
               std::make_shared<const Sequence>(made)});
  }
  return absl::OkStatus();
}

}  // namespace optrail::graph
