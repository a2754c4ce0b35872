#ifndef OPTRAIL_GRAPH_FUSION_COPIER_H_
#define OPTRAIL_GRAPH_FUSION_COPIER_H_

// Copier copies a graph node by node, with values that take the place of
// others: what rewriting a graph is made of.
//
//   Copier copier(graph);
//   for (const Node& node : graph.nodes) {
//     if (Unwanted(node)) {
//       copier.Alias(node.outputs[0], copier.Get(node.inputs[0]));
//     } else {
//       OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(node));
//     }
//   }
//   return copier.Done();
//
// The graph must outlive it.

#include <vector>

#include "absl/status/status.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

class Copier {
 public:
  explicit Copier(const Graph& graph);

  Graph& copy() { return copy_; }

  // The value in the copy that stands for `value`: -1 where there is none yet.
  int Get(int value);
  void Alias(int value, int by) { place_[value] = by; }
  // Likewise; `by` gets the name of `value`.
  void Set(int value, int by);

  absl::Status CopyNode(const Node& node);

  // The copy with its outputs, without what no output needs.
  Graph Done();

 private:
  const Graph& graph_;
  Graph copy_;
  std::vector<int> place_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_COPIER_H_
