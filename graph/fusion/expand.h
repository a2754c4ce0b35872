#ifndef OPTRAIL_GRAPH_FUSION_EXPAND_H_
#define OPTRAIL_GRAPH_FUSION_EXPAND_H_

// Expand writes an operator for which there is no kernel in terms of those that
// have one, so that a runner need not leave it to the reference:
//
//   convolutions and windows in one dimension   in two
//   conv_transpose     conv over x with zeros in between; a product where
//                      windows do not overlap
//   arg_max, arg_min   the first place that equals the maximum
//   top_k              places by how many elements come before
//   cumsum             sums of what stands before
//   gather_nd          gather of rows
//   scatter_elements   sums of the updates that name a place
//   concat of many     several of fewer
//   softmax            along the last axis
//
// The last ones compare all pairs along an axis: long axes stay as they are.

#include <vector>

#include "absl/status/statusor.h"
#include "graph/fusion/copier.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// The values in the copy that stand for the node's results; nothing where the
// node is to be copied as it is.
absl::StatusOr<std::vector<int>> Expand(const Graph& graph, const Node& node,
                                        Copier& copier);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_EXPAND_H_
