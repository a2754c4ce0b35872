#include "graph/fusion/copier.h"

#include "base/status_macros.h"

namespace optrail::graph {

Copier::Copier(const Graph& graph)
    : graph_(graph), place_(graph.values.size(), -1) {
  copy_.name = graph.name;
  for (const int input : graph.inputs) {
    place_[input] = copy_.AddInput(graph.values[input].name, graph.type(input));
  }
}

int Copier::Get(int value) {
  if (value < 0) return value;
  if (place_[value] < 0 && graph_.is_constant(value)) {
    const Value& v = graph_.values[value];
    place_[value] = copy_.AddConstant(v.name, v.type, *v.constant);
  }
  return place_[value];
}

void Copier::Set(int value, int by) {
  place_[value] = by;
  copy_.values[by].name = graph_.values[value].name;
}

absl::Status Copier::CopyNode(const Node& node) {
  std::vector<int> inputs;
  for (const int input : node.inputs) inputs.push_back(Get(input));
  OPTRAIL_ASSIGN_OR_RETURN(
      const int first,
      copy_.AddNode(node.name, node.op, inputs, node.attributes));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Set(node.outputs[i], first + static_cast<int>(i));
  }
  return absl::OkStatus();
}

Graph Copier::Done() {
  for (const int output : graph_.outputs) copy_.outputs.push_back(Get(output));
  return WithoutUnused(copy_);
}

}  // namespace optrail::graph
