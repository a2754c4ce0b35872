#ifndef OPTRAIL_GRAPH_TRAINING_RECOMPUTE_H_
#define OPTRAIL_GRAPH_TRAINING_RECOMPUTE_H_

// Recomputation in training: a value of the forward pass that the backward pass
// reads is either kept until then or computed again.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const TrainingGraph training,
//                            WithGradients(model));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<RecomputePoint> front,
//                            RecomputeFront(training, costs));
//   OPTRAIL_ASSIGN_OR_RETURN(const Graph less,
//                            Recompute(training, front[3].dropped));
//
// Chen et al., "Training deep nets with sublinear memory cost", 2016, keep what
// stands between segments. Here any set of values may be dropped, as in
// Korthikanti et al., "Reducing activation recomputation in large transformer
// models", 2022: equal values of all layers are dropped together, first those
// that free the most bytes for the time that it takes to compute them again.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/training/gradients.h"

namespace optrail::graph {

// Bytes of the forward pass that are kept for the backward pass, if the values
// in `dropped` are not. Views count as what they show; inputs and constants are
// there anyhow.
int64_t KeptBytes(const TrainingGraph& training, const std::set<int>& dropped);

// The same training step, where a dropped value that the backward pass reads is
// computed again right before it does. The results are the same.
absl::StatusOr<Graph> Recompute(const TrainingGraph& training,
                                const std::set<int>& dropped);

// The cost of a node is its time in nanoseconds.
using NodeCost = std::function<double(const Graph& graph, const Node& node)>;

struct RecomputePoint {
  std::string what;        // dropped at this point: "24 x erf f32[1,384,4096]"
  std::set<int> dropped;   // all values that are dropped here
  int64_t kept_bytes = 0;  // KeptBytes
  double added_ns = 0;     // the time of what is computed again, by the costs
};

// From nothing dropped to as much as helps: each point keeps fewer bytes and
// takes more time than the one before.
absl::StatusOr<std::vector<RecomputePoint>> RecomputeFront(
    const TrainingGraph& training, const NodeCost& cost);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_TRAINING_RECOMPUTE_H_
