#ifndef OPTRAIL_GRAPH_IR_GRAPH_TEXT_H_
#define OPTRAIL_GRAPH_IR_GRAPH_TEXT_H_

// A graph for people (text, DOT) and for programs (its proto).
//
//   std::cout << GraphText(graph);
//   // y f32[2,3] = relu(x f32[2,3])
//   std::ofstream("graph.dot") << GraphDot(graph);   // dot -Tsvg graph.dot
//
// Names come from models and may hold anything: they are quoted for each form.

#include <string>

#include "graph/ir/graph.h"
#include "graph/proto/graph.pb.h"

namespace optrail::graph {

// A line for each input, node and output.
std::string GraphText(const Graph& graph);

// For Graphviz. Constants are not drawn.
std::string GraphDot(const Graph& graph);

proto::Graph GraphProto(const Graph& graph);

// "axes=[1,2] keepdims=1", sorted by name.
std::string AttributesText(const Attributes& attributes);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_IR_GRAPH_TEXT_H_
