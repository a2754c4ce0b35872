#include "graph/runner/groups.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "graph/ir/ops.h"
#include "graph/runner/codegen.h"

namespace optrail::graph {
namespace {

enum class Part { kNone, kElementwise, kGather, kReduction };

Part PartOf(const Graph& graph, const Node& node) {
  for (const int value : node.inputs) {
    if (value >= 0 && !HasCode(graph.type(value).type)) return Part::kNone;
  }
  for (const int value : node.outputs) {
    if (!HasCode(graph.type(value).type)) return Part::kNone;
  }
  if (node.op == "gather" || node.op == "gather_elements") return Part::kGather;
  const OpKind kind = FindOp(node.op)->kind;
  if (kind == OpKind::kElementwise) return Part::kElementwise;
  if (kind == OpKind::kReduction && node.op[0] == 'r') return Part::kReduction;
  return Part::kNone;
}

// The dimensions that a loop around a node runs over.
const Dims& LoopDims(const Graph& graph, const Node& node, Part part) {
  return graph.type(part == Part::kReduction ? node.inputs[0] : node.outputs[0])
      .dims;
}

}  // namespace

Groups FindGroups(const Graph& graph, int most_nodes) {
  const size_t count = graph.nodes.size();
  Groups groups;
  groups.inlined.assign(count, false);
  const std::vector<std::vector<int>> consumers = graph.Consumers();
  groups.consumers.resize(graph.values.size());
  for (size_t v = 0; v < consumers.size(); ++v) {
    groups.consumers[v] = static_cast<int>(consumers[v].size());
  }
  for (const int output : graph.outputs) ++groups.consumers[output];
  std::vector<Part> parts;
  for (const Node& node : graph.nodes) parts.push_back(PartOf(graph, node));
  std::vector<int> root(count, -1);  // the node whose loop it is
  std::map<int, int> sizes;
  for (size_t n = count; n-- > 0;) {
    root[n] = static_cast<int>(n);
    sizes[root[n]] = 1;
    if (parts[n] != Part::kElementwise && parts[n] != Part::kGather) continue;
    const Node& node = graph.nodes[n];
    const std::vector<int>& readers = consumers[node.outputs[0]];
    int loop = -1;
    std::string why;
    for (const int reader : readers) {
      if (parts[reader] == Part::kNone || parts[reader] == Part::kGather) {
        why = absl::StrCat(graph.nodes[reader].op, " reads the result");
      } else if (loop >= 0 && root[reader] != loop) {
        why = "the result has two consumers";
      } else {
        loop = root[reader];
      }
    }
    if (loop < 0) continue;
    const Node& last = graph.nodes[loop];
    if (static_cast<int>(readers.size()) != groups.consumers[node.outputs[0]]) {
      why = "the result is an output";
    } else if (why.empty() && graph.type(node.outputs[0]).dims !=
                                  LoopDims(graph, last, parts[loop])) {
      why = "it is repeated along another dimension";
    } else if (why.empty() && sizes[loop] >= most_nodes) {
      why = "the loop has too many nodes";
    }
    if (!why.empty()) {
      groups.reasons.push_back({static_cast<int>(n), why});
      continue;
    }
    groups.inlined[n] = true;
    root[n] = loop;
    ++sizes[loop];
  }
  return groups;
}

}  // namespace optrail::graph
