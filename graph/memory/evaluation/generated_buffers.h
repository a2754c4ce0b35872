#ifndef OPTRAIL_GRAPH_MEMORY_EVALUATION_GENERATED_BUFFERS_H_
#define OPTRAIL_GRAPH_MEMORY_EVALUATION_GENERATED_BUFFERS_H_

// Generated inputs for the memory planner whose answer is known or bounded.
//
//   const auto buffers = TightBuffers(200, 0.1, /*seed=*/1);
//   // A placement within kTightCapacity exists.

#include <cstdint>
#include <vector>

#include "graph/memory/plan.h"

namespace optrail::graph {

inline constexpr int64_t kTightCapacity = 1048576;

// Buffers that are the pieces of one rectangle, time by memory: it is cut in
// two, or in five around a middle (which no sequence of straight cuts gives),
// until there are `count` pieces, and a fraction of them is dropped. So the
// rest fits into kTightCapacity, and hardly any space is left. Sizes and times
// are multiples of 512, as in MiniMalloc's inputs.
std::vector<MemoryBuffer> TightBuffers(int count, double dropped,
                                       uint64_t seed);

// Buffers of a training step with `layers` layers: weights that live
// throughout, activations that live from the forward to the backward pass of
// their layer, gradients, and temporaries of one layer with skewed sizes.
// About 14 buffers a layer.
std::vector<MemoryBuffer> TrainingBuffers(int layers, uint64_t seed);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_EVALUATION_GENERATED_BUFFERS_H_
