#ifndef OPTRAIL_GRAPH_RUNNER_GROUPS_H_
#define OPTRAIL_GRAPH_RUNNER_GROUPS_H_

// FindGroups decides which elementwise nodes are computed inside the loop of
// the node that reads them, so that their results never reach memory.
//
//   const Groups groups = FindGroups(graph);
//   if (groups.inlined[n]) { ... no loop of its own ... }
//
// A node is inlined if all that read its result are in one loop, over as many
// elements. Gathers are inlined into reductions, too.

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace optrail::graph {

struct Groups {
  std::vector<bool> inlined;   // by node
  std::vector<int> consumers;  // by value: how many nodes and outputs read it
  // Elementwise nodes that read each other and are not joined, and why.
  std::vector<std::pair<int, std::string>> reasons;
};

// More nodes in one loop spill registers and compile slowly.
inline constexpr int kMostNodesInLoop = 40;

// No loop has more than `most_nodes`.
Groups FindGroups(const Graph& graph, int most_nodes = kMostNodesInLoop);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_GROUPS_H_
