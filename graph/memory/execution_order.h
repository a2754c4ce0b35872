#ifndef OPTRAIL_GRAPH_MEMORY_EXECUTION_ORDER_H_
#define OPTRAIL_GRAPH_MEMORY_EXECUTION_ORDER_H_

// FindExecutionOrder orders the nodes of a graph so that the largest sum of
// bytes that are live at once, the peak, is small.
//
//   Dataflow flow;
//   flow.tensor_bytes = {4096, 1024};
//   flow.nodes = {{"reduce", {0}, {1}, 0}};
//   flow.outputs = {1};
//   OPTRAIL_ASSIGN_OR_RETURN(const ExecutionOrder order,
//                            FindExecutionOrder(flow));
//   Use(order.peak_before_bytes, order.peak_bytes, order.nodes);
//   OPTRAIL_ASSIGN_OR_RETURN(const MemoryPlan plan,
//                            Plan(LifetimesOf(flow, order.nodes)));
//
// The peak is the lower bound of the arena that Plan finds. A tensor is live
// from the node that writes it (the beginning, where none does) to the last
// node that reads it (the end, if it is an output).
//
// To find an order with the least peak is NP-hard (Sethi, "Complete register
// allocation problems", 1975). Three methods are tried:
//
// 1. List scheduling: of the ready nodes, the one after which the fewest bytes
//    are live, with ties and disturbances by a seed.
// 2. Local search: a node near the peak moves to another place that its
//    neighbours in the graph allow.
// 3. Search over the sets of nodes that may have run, the set with the smallest
//    peak first. It proves that an order is minimal, and ends without an answer
//    where there are more than most_states such sets. A chain of n nodes
//    has n + 1.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "graph/memory/plan.h"

namespace optrail::graph {

struct DataflowNode {
  std::string name;
  std::vector<int> reads;   // tensors; several times is once
  std::vector<int> writes;  // tensors, each written by one node
  int64_t workspace_bytes = 0;
};

struct Dataflow {
  std::vector<int64_t> tensor_bytes;
  std::vector<DataflowNode> nodes;
  std::vector<int> outputs;  // tensors that are live until the end
};

struct ExecutionOrderOptions {
  absl::Duration time_limit = absl::Seconds(1);  // processor time
  uint64_t seed = 1;
  int most_states = 200'000;
  // Without it the order is the same on every machine that is fast enough.
  bool local_search = true;
};

struct ExecutionOrder {
  std::vector<int> nodes;         // indices into Dataflow::nodes
  int64_t peak_before_bytes = 0;  // in the order of the input
  int64_t peak_bytes = 0;
  bool is_minimal = false;  // no order has a smaller peak
};

// Where the nodes are not listed in an order in which they can run, the order
// "before" is the one that runs the first node in the list that can run.
// InvalidArgument, naming the node, for a tensor that does not exist or is
// written twice, a negative size, or a cycle. Thread-safe.
absl::StatusOr<ExecutionOrder> FindExecutionOrder(
    const Dataflow& flow, const ExecutionOrderOptions& options = {});

// The peak of a valid order.
int64_t PeakBytes(const Dataflow& flow, const std::vector<int>& order);

// What Plan takes: a buffer for each tensor, "tensor 3", and for each
// workspace, "workspace of NAME"; times are positions in `order`. Buffer i is
// tensor i.
std::vector<MemoryBuffer> LifetimesOf(const Dataflow& flow,
                                      const std::vector<int>& order);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_EXECUTION_ORDER_H_
