#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/fusion/copier.h"
#include "graph/fusion/expand.h"
#include "graph/fusion/fusion.h"

namespace optrail::graph {
namespace {

// A vector along dimension 1 of `rank` dimensions.
Array AlongChannels(std::vector<double> values, size_t rank,
                    proto::ElementType type) {
  Dims dims(rank, 1);
  dims[1] = static_cast<int64_t>(values.size());
  return Array::Reals(type, dims, std::move(values));
}

absl::StatusOr<int> SplitBatchNorm(const Graph& graph, const Node& node,
                                   Copier& copier) {
  std::vector<Array> p;
  for (int i = 1; i < 5; ++i) {
    const Value& value = graph.values[node.inputs[i]];
    p.push_back(ConstantArray(value.type, *value.constant));
  }
  std::vector<double> scale, shift;
  for (size_t c = 0; c < p[0].reals.size(); ++c) {
    const double factor =
        p[0].reals[c] / std::sqrt(p[3].reals[c] + node.Real("epsilon"));
    scale.push_back(factor);
    shift.push_back(p[1].reals[c] - p[2].reals[c] * factor);
  }
  const TensorType& type = graph.type(node.inputs[0]);
  Graph& to = copier.copy();
  const int by = to.AddConstant(
      absl::StrCat(node.name, "/scale"),
      AlongChannels(std::move(scale), type.dims.size(), type.type));
  const int plus = to.AddConstant(
      absl::StrCat(node.name, "/shift"),
      AlongChannels(std::move(shift), type.dims.size(), type.type));
  OPTRAIL_ASSIGN_OR_RETURN(const int scaled,
                           to.AddNode(absl::StrCat(node.name, "/scaled"), "mul",
                                      {copier.Get(node.inputs[0]), by}));
  return to.AddNode(node.name, "add", {scaled, plus});
}

absl::StatusOr<int> SplitBias(const Graph& graph, const Node& node,
                              Copier& copier) {
  Graph& to = copier.copy();
  Dims dims(graph.type(node.outputs[0]).dims.size(), 1);
  dims[1] = graph.type(node.inputs[2]).dims[0];
  OPTRAIL_ASSIGN_OR_RETURN(
      const int bias,
      to.AddNode(absl::StrCat(node.name, "/bias"), "reshape",
                 {copier.Get(node.inputs[2])}, {{"dims", dims}}));
  OPTRAIL_ASSIGN_OR_RETURN(
      const int conv,
      to.AddNode(absl::StrCat(node.name, "/conv"), node.op,
                 {copier.Get(node.inputs[0]), copier.Get(node.inputs[1])},
                 node.attributes));
  return to.AddNode(node.name, "add", {conv, bias});
}

// The operand that an addition of zeros or a product with ones passes on; -1.
int PassedOn(const Graph& graph, const Node& node) {
  if (node.op != "add" && node.op != "mul") return -1;
  const double neutral = node.op == "add" ? 0 : 1;
  for (const int i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    const int other = node.inputs[1 - i];
    const int producer = graph.values[other].producer;
    // A bias of zeros costs a layer nothing, and rules look for it.
    const bool is_bias = producer >= 0 && graph.nodes[producer].op == "matmul";
    if (value.constant == nullptr || value.constant->absent() || is_bias ||
        graph.is_constant(other) ||
        !(graph.type(other) == graph.type(node.outputs[0]))) {
      continue;
    }
    const Array array = ConstantArray(value.type, *value.constant);
    bool all = true;
    for (int64_t e = 0; all && e < array.elements(); ++e) {
      all = array.At(e) == neutral;
    }
    if (all) return other;
  }
  return -1;
}

}  // namespace

absl::StatusOr<Graph> Simplify(const Graph& graph) {
  Copier copier(graph);
  for (const Node& node : graph.nodes) {
    bool constant = node.op == "batch_norm";
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      constant = constant && graph.is_constant(node.inputs[i]);
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<int> expanded,
                             Expand(graph, node, copier));
    const int passed_on = PassedOn(graph, node);
    if (!expanded.empty()) {
      for (size_t i = 0; i < expanded.size(); ++i) {
        copier.Set(node.outputs[i], expanded[i]);
      }
    } else if (passed_on >= 0) {
      copier.Alias(node.outputs[0], copier.Get(passed_on));
    } else if (constant) {
      OPTRAIL_ASSIGN_OR_RETURN(const int y,
                               SplitBatchNorm(graph, node, copier));
      copier.Set(node.outputs[0], y);
    } else if (node.op == "conv" && node.inputs.size() > 2 &&
               node.inputs[2] >= 0) {
      OPTRAIL_ASSIGN_OR_RETURN(const int y, SplitBias(graph, node, copier));
      copier.Set(node.outputs[0], y);
    } else {
      OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(node));
    }
  }
  return copier.Done();
}

}  // namespace optrail::graph
