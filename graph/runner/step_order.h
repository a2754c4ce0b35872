#ifndef OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_
#define OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_

// OrderSteps puts the steps of a program in an order in which less of the arena
// is live at once.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Program program, Lower(graph));
//   const OrderGain gain = OrderSteps(&program);
//   Use(gain.before_bytes, gain.after_bytes);
//
// To find an order with the least peak is NP-hard (Sethi, "Complete register
// allocation problems", 1975). This is list scheduling, one pass. The order
// depends on the program alone. Steps that run before the calls come first.

#include <cstdint>

#include "graph/runner/program.h"

namespace optrail::graph {

// The largest sum of bytes of the arena that are live at once.
struct OrderGain {
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// The order stays as it is where the new one has no smaller peak.
OrderGain OrderSteps(Program* program);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_
