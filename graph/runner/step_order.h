#ifndef OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_
#define OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_

// OrderSteps puts the steps of a program in an order in which less of the arena
// is live at once.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Program program, Lower(graph));
//   OPTRAIL_ASSIGN_OR_RETURN(const OrderGain gain, OrderSteps(&program));
//   Use(gain.before_bytes, gain.after_bytes);
//
// The order depends on the program alone, not on how fast the machine is. Steps
// that run before the calls come first.

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/runner/program.h"

namespace optrail::graph {

// The largest sum of bytes of the arena that are live at once.
struct OrderGain {
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

// The order stays as it is where no other has a smaller peak. Errors of
// FindExecutionOrder.
absl::StatusOr<OrderGain> OrderSteps(Program* program);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_STEP_ORDER_H_
