#ifndef OPTRAIL_GRAPH_TRAINING_GRADIENTS_H_
#define OPTRAIL_GRAPH_TRAINING_GRADIENTS_H_

// WithGradients makes the graph of a training step from that of a model: behind
// its nodes come those that compute the gradients of its weights.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const TrainingGraph training,
//                            WithGradients(graph));
//   Use(training.graph.outputs, training.forward_nodes);
//
// The gradients of the model's outputs are inputs of the graph, behind the
// model's own; so any loss will do. Weights are the constants that products
// multiply by, biases that are added as vectors, and scales and biases of layer
// norms. Tables of gather are not among them: nothing flows through indices.
//
// Reverse accumulation, as in Griewank and Walther, "Evaluating Derivatives",
// 2008. There are rules for the operators of transformers; Unimplemented names
// a node that has none.

#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

struct TrainingGraph {
  // The outputs are those of the model, then the gradients of weights().
  Graph graph;
  int forward_nodes = 0;     // those of the model, which come first
  std::vector<int> weights;  // values, of the model and of `graph` alike
};

absl::StatusOr<TrainingGraph> WithGradients(const Graph& model);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_TRAINING_GRADIENTS_H_
