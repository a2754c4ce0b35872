// Branches and loops: a condition, or how often a loop runs, must be known when
// the model is imported. Nodes of a loop are added anew for each iteration.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/node_import.h"
#include "graph/onnx/node_order.h"

namespace optrail::graph {
namespace {

constexpr int kMostBranchDepth = 8;
constexpr int64_t kMostIterations = 4096;

}  // namespace

absl::Status Importer::AddBranch(const OnnxNode& node,
                                 const std::vector<int>& operands, Scope& scope,
                                 int depth) {
  const Value* const condition = operands.empty() || operands[0] < 0
                                     ? nullptr
                                     : &graph_.values[operands[0]];
  if (condition == nullptr || condition->type.type != proto::ELEMENT_BOOL ||
      Elements(condition->type.dims) != 1) {
    return AtNode(node, absl::InvalidArgumentError(
                            "expected one boolean as its condition"));
  }
  if (condition->constant == nullptr || condition->constant->absent()) {
    NotCovered(node, scope, "the condition is no constant");
    return absl::OkStatus();
  }
  const bool is_true = (*condition->constant->bytes)[0] != 0;
  const auto found =
      node.attributes.find(is_true ? "then_branch" : "else_branch");
  if (found == node.attributes.end() || found->second.graph == nullptr ||
      depth >= kMostBranchDepth) {
    return AtNode(node, absl::InvalidArgumentError("has no such branch"));
  }
  const OnnxGraph& branch = *found->second.graph;
  Scope inner(&scope);
  OPTRAIL_RETURN_IF_ERROR(AddConstants(branch, inner));
  OPTRAIL_RETURN_IF_ERROR(AddNodes(branch, inner, depth + 1));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Named* const result = i < branch.outputs.size()
                                    ? inner.Find(branch.outputs[i].name)
                                    : nullptr;
    if (result == nullptr) {
      return AtNode(node, absl::InvalidArgumentError(
                              absl::StrCat("its branch has no result ", i)));
    }
    scope.Set(node.outputs[i], *result);
  }
  return absl::OkStatus();
}

absl::StatusOr<Importer::Body> Importer::BodyOf(const OnnxNode& node,
                                                const Scope& scope,
                                                size_t inputs,
                                                size_t least_outputs,
                                                int depth) {
  const auto found = node.attributes.find("body");
  if (found == node.attributes.end() || found->second.graph == nullptr ||
      depth >= kMostBranchDepth) {
    return AtNode(node, absl::InvalidArgumentError("has no such body"));
  }
  Body body{found->second.graph.get(), Scope(&scope), depth, {}};
  const size_t outputs = body.graph->outputs.size();
  if (body.graph->inputs.size() != inputs || outputs < least_outputs) {
    return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                            "its body has ", body.graph->inputs.size(),
                            " inputs and ", outputs, " outputs; expected ",
                            inputs, " and at least ", least_outputs)));
  }
  body.stacked.resize(outputs - least_outputs);
  OPTRAIL_RETURN_IF_ERROR(AddConstants(*body.graph, body.scope));
  return body;
}

absl::StatusOr<std::vector<int>> Importer::Iterate(
    const OnnxNode& node, Body& body, const std::vector<int>& inputs,
    int64_t iteration) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    body.scope.Set(body.graph->inputs[i].name, {inputs[i], ""});
  }
  const std::string outer = iteration_;
  absl::StrAppend(&iteration_, "[", iteration, "]");
  const absl::Status added = AddNodes(*body.graph, body.scope, body.depth + 1);
  iteration_ = outer;
  OPTRAIL_RETURN_IF_ERROR(added);
  std::vector<int> outputs;
  for (const OnnxValue& output : body.graph->outputs) {
    const Named* const found = body.scope.Find(output.name);
    if (found == nullptr) {
      return AtNode(node, absl::InvalidArgumentError(absl::StrCat(
                              "its body computes no ", Quoted(output.name))));
    }
    if (found->sequence != nullptr) {
      return AtNode(node,
                    absl::InvalidArgumentError(absl::StrCat(
                        "result ", Quoted(output.name),
                        " of its body is a sequence; expected a tensor")));
    }
    outputs.push_back(found->value);
  }
  const size_t first = outputs.size() - body.stacked.size();
  for (size_t i = first; i < outputs.size(); ++i) {
    body.stacked[i - first].push_back(outputs[i]);
  }
  return outputs;
}

bool Importer::HasBlocked(const std::vector<int>& values) {
  return std::find(values.begin(), values.end(), -1) != values.end();
}

absl::Status Importer::BindLoop(const OnnxNode& node, const Body& body,
                                std::vector<int> results, const Dims& axes,
                                const Dims& directions, Scope& scope) {
  const size_t nodes = graph_.nodes.size();
  NodeImport import(graph_, node, {}, model_.opset, work_);
  for (size_t s = 0; s < body.stacked.size(); ++s) {
    std::vector<int> parts = body.stacked[s];
    if (parts.empty()) {
      NotCovered(node, scope, "there is no iteration to take results from");
      return absl::OkStatus();
    }
    const int64_t axis =
        import.Axis(s < axes.size() ? axes[s] : 0, import.rank(parts[0]) + 1);
    for (int& part : parts) {
      Dims dims = import.dims(part);
      dims.insert(dims.begin() + std::min<int64_t>(axis, import.rank(part)), 1);
      part = import.Reshape(part, dims);
    }
    if (s < directions.size() && directions[s] != 0) {
      std::reverse(parts.begin(), parts.end());
    }
    results.push_back(parts.size() == 1 || !import.ok()
                          ? parts[0]
                          : import.Emit("concat", parts, {{"axis", axis}}));
  }
  if (!import.ok()) return AtNode(node, import.status());
  return Bind(node, results, nodes, scope);
}

absl::Status Importer::AddLoop(const OnnxNode& node,
                               const std::vector<int>& operands, Scope& scope,
                               int depth) {
  if (operands.size() < 2) {
    return AtNode(
        node, absl::InvalidArgumentError("expected a count and a condition"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(Body body, BodyOf(node, scope, operands.size(),
                                             operands.size() - 1, depth));
  NodeImport import(graph_, node, operands, model_.opset, work_);
  std::vector<int> inputs = operands;
  for (int64_t i = 0;; ++i) {
    // The count and the condition may be left out.
    const Dims count = operands[0] < 0 ? Dims{kMostIterations + 1}
                                       : import.KnownOrNothing(operands[0]);
    const Dims condition =
        inputs[1] < 0 ? Dims{1} : import.KnownOrNothing(inputs[1]);
    if (count.size() != 1 || condition.size() != 1) {
      NotCovered(node, scope, "the number of iterations is no constant");
      return absl::OkStatus();
    }
    if (i >= count[0] || condition[0] == 0) break;
    if (i == kMostIterations) {
      NotCovered(node, scope, absl::StrCat("has more than ", i, " iterations"));
      return absl::OkStatus();
    }
    inputs[0] = import.IntConstant({i}, {});
    if (inputs[1] < 0) {
      inputs[1] =
          import.Constant(Array::Integers(proto::ELEMENT_BOOL, {}, {1}));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                             Iterate(node, body, inputs, i));
    if (HasBlocked(outputs)) {
      Block(scope, node, "needs a node of its body that is not covered");
      return absl::OkStatus();
    }
    std::copy(outputs.begin(), outputs.begin() + inputs.size() - 1,
              inputs.begin() + 1);
  }
  return BindLoop(node, body, {inputs.begin() + 2, inputs.end()}, {}, {},
                  scope);
}

absl::Status Importer::AddScan(const OnnxNode& node,
                               const std::vector<int>& operands, Scope& scope,
                               int depth) {
  if (model_.opset < 9) {
    NotCovered(node, scope, "before opset 9");
    return absl::OkStatus();
  }
  NodeImport import(graph_, node, operands, model_.opset, work_);
  const int64_t sequences = import.Int("num_scan_inputs", 0);
  if (sequences < 1 || sequences > import.inputs()) {
    return AtNode(node, absl::InvalidArgumentError(
                            absl::StrCat("num_scan_inputs=", sequences, " of ",
                                         import.inputs(), " operands")));
  }
  const size_t states = operands.size() - sequences;
  OPTRAIL_ASSIGN_OR_RETURN(Body body,
                           BodyOf(node, scope, operands.size(), states, depth));
  const Dims given = import.Ints("scan_input_axes", Dims(sequences, 0));
  const Dims backward =
      import.Ints("scan_input_directions", Dims(sequences, 0));
  if (static_cast<int64_t>(given.size()) != sequences ||
      static_cast<int64_t>(backward.size()) != sequences) {
    return AtNode(node, absl::InvalidArgumentError(
                            "expected an axis for each scan input"));
  }
  Dims axes;
  int64_t count = -1;
  for (int64_t s = 0; s < sequences && import.ok(); ++s) {
    const int value = import.In(static_cast<int>(states + s));
    axes.push_back(import.Axis(given[s], import.rank(value)));
    if (!import.ok()) break;
    const int64_t size = import.dims(value)[axes[s]];
    if (count >= 0 && size != count) {
      import.Wrong(absl::StrCat("scan inputs of ", count, " and ", size));
    }
    count = size;
  }
  if (!import.ok()) return AtNode(node, import.status());
  if (count > kMostIterations) {
    NotCovered(node, scope, absl::StrCat("has ", count, " iterations"));
    return absl::OkStatus();
  }
  std::vector<int> state(operands.begin(), operands.begin() + states);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int> inputs = state;
    for (int64_t s = 0; s < sequences; ++s) {
      const int value = operands[states + s];
      const int slice =
          import.Slice(value, axes[s], backward[s] != 0 ? count - 1 - i : i, 1);
      if (!import.ok()) return AtNode(node, import.status());
      Dims dims = import.dims(slice);
      dims.erase(dims.begin() + axes[s]);
      inputs.push_back(import.Reshape(slice, dims));
    }
    if (!import.ok()) return AtNode(node, import.status());
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                             Iterate(node, body, inputs, i));
    if (HasBlocked(outputs)) {
      Block(scope, node, "needs a node of its body that is not covered");
      return absl::OkStatus();
    }
    state.assign(outputs.begin(), outputs.begin() + states);
  }
  return BindLoop(node, body, state, import.Ints("scan_output_axes"),
                  import.Ints("scan_output_directions"), scope);
}

}  // namespace optrail::graph
