#ifndef OPTRAIL_SUITES_GRAPH_GRAPH_TIMER_H_
#define OPTRAIL_SUITES_GRAPH_GRAPH_TIMER_H_

// GraphTimer is the clock of a whole graph for stopwatches.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<GraphTimer> timer,
//                            GraphTimer::Create(*runner, *device));
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Sampling sampling,
//       TakeSamples(options, timer->get(), *monitor));
//
// The runner and the device must outlive it.

#include <memory>

#include "absl/status/statusor.h"
#include "graph/runner/runner.h"
#include "ops/core/cpu_device.h"
#include "ops/core/device.h"

namespace optrail::suites {

class GraphTimer {
 public:
  virtual ~GraphTimer() = default;

  static absl::StatusOr<std::unique_ptr<GraphTimer>> Create(
      graph::Runner& runner, ops::CpuDevice& device);

  // It returns the error of a call.
  virtual ops::Timer& get() = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_GRAPH_TIMER_H_
