#ifndef OPTRAIL_GRAPH_RUNNER_PRECISION_H_
#define OPTRAIL_GRAPH_RUNNER_PRECISION_H_

// ConvertFloats makes a graph of f32 one whose tensors are of 16 bits in
// memory.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Graph half,
//                            ConvertFloats(graph, proto::ELEMENT_BF16));
//
// Products, convolutions, attention, softmax, norms and movement get operands
// of the new type. Elementwise operators and reductions compute in f32: their
// operands are cast on the way in, and a result is cast where it reaches
// memory (graph/runner/groups.h says where it does not). Scalars, constants
// that elementwise operators read, and the scale and shift of conv_bn_relu
// stay f32. Inputs keep their types; outputs that were f32 have the new one. A
// finite constant that is too large for it becomes its largest value.

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// `to` is bf16, the type for which kernels can be generated. InvalidArgument
// for another one.
absl::StatusOr<Graph> ConvertFloats(const Graph& graph, proto::ElementType to);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_PRECISION_H_
