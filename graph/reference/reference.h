#ifndef OPTRAIL_GRAPH_REFERENCE_REFERENCE_H_
#define OPTRAIL_GRAPH_REFERENCE_REFERENCE_H_

// RunReference computes a graph in double precision, one node after the other:
// what is right, not what is fast.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
//                            RunReference(graph, inputs));
//   const Difference difference = Compare(ours, outputs[0]);
//   Use(difference.relative);
//
// Values are dropped after the last node that reads them.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// One array per input of the graph, in its order; the result has one per
// output. InvalidArgument where an input's type differs; ResourceExhausted
// names the node at which its values would not fit into the machine's memory;
// OutOfRange names the node whose indices leave their tensor. `observe`, if
// any, gets every computed value.
absl::StatusOr<std::vector<Array>> RunReference(
    const Graph& graph, const std::vector<Array>& inputs,
    const std::function<void(int value, const Array&)>& observe = nullptr);

// Seeded values for an input: normal ones, indices below `index_limit`.
Array RandomInput(const TensorType& type, uint64_t seed, int64_t index_limit);

// For every input of the graph, in its order.
std::vector<Array> SeededInputs(const Graph& graph, uint64_t seed);

// For each input that holds indices (of gather and its like), the smallest
// dimension that they index; 2 for other integers.
std::vector<int64_t> IndexLimits(const Graph& graph);

// For each input that holds indices, the size of the dimension that each of its
// values must lie in; 0 where the input holds none, or some may be left unused.
std::vector<int64_t> IndexBounds(const Graph& graph);

// OutOfRange names the first integer of `array` that leaves a dimension of size
// `bound`; a negative one counts from its end. OK where `bound` is 0. Kernels
// clamp such an index, so that this is to be asked before they run.
absl::Status CheckIndices(const Array& array, int64_t bound);

struct Difference {
  // The largest |ours - expected| / (largest |expected|).
  double relative = 0;
  int64_t worst = 0;  // the element
  // A different type, or NaN where the other is none.
  std::string problem;
};
Difference Compare(const Array& ours, const Array& expected);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_REFERENCE_REFERENCE_H_
