#include "graph/onnx/node_order.h"

#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace optrail::graph {

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::CEscape(name.substr(0, 200)), "\"");
}

absl::Status AtNode(const OnnxNode& node, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("node ", Quoted(node.name), " (", node.op,
                                   "): ", status.message()));
}

absl::StatusOr<std::vector<int>> SortedNodes(const OnnxGraph& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  std::map<absl::string_view, int> producer;
  for (int n = 0; n < count; ++n) {
    for (const std::string& output : graph.nodes[n].outputs) {
      if (output.empty()) continue;
      if (!producer.emplace(output, n).second) {
        return AtNode(graph.nodes[n],
                      absl::InvalidArgumentError(absl::StrCat(
                          "computes ", Quoted(output), ", as does node ",
                          Quoted(graph.nodes[producer[output]].name))));
      }
    }
  }
  std::vector<int> missing(count, 0), order;
  std::vector<std::vector<int>> readers(count);
  for (int n = 0; n < count; ++n) {
    for (const std::string& input : graph.nodes[n].inputs) {
      const auto found = producer.find(input);
      if (input.empty() || found == producer.end()) continue;
      readers[found->second].push_back(n);
      ++missing[n];
    }
  }
  std::set<int> ready;
  for (int n = 0; n < count; ++n) {
    if (missing[n] == 0) ready.insert(n);
  }
  while (!ready.empty()) {
    const int n = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(n);
    for (const int reader : readers[n]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  for (int n = 0; n < count && order.size() < graph.nodes.size(); ++n) {
    if (missing[n] > 0) {
      return AtNode(graph.nodes[n],
                    absl::InvalidArgumentError(
                        "is part of a cycle, or reads a result of one"));
    }
  }
  return order;
}

}  // namespace optrail::graph
