#ifndef OPTRAIL_GRAPH_ONNX_NODE_ORDER_H_
#define OPTRAIL_GRAPH_ONNX_NODE_ORDER_H_

// SortedNodes is the order in which nodes of an ONNX graph are imported, and
// finds cycles and results that two nodes compute.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {

// Names in messages: quoted, escaped and at most 200 characters.
std::string Quoted(absl::string_view name);

// The same error with the node in front.
absl::Status AtNode(const OnnxNode& node, const absl::Status& status);

// Nodes in an order in which each stands after those that it reads. Models are
// meant to be so already.
absl::StatusOr<std::vector<int>> SortedNodes(const OnnxGraph& graph);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_ONNX_NODE_ORDER_H_
