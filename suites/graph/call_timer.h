#ifndef OPTRAIL_SUITES_GRAPH_CALL_TIMER_H_
#define OPTRAIL_SUITES_GRAPH_CALL_TIMER_H_

// CallTimer is the clock of anything that calls several kernels in a row: a
// graph, a workload.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::unique_ptr<CallTimer> timer,
//       CallTimer::Create([&](const ops::Call&) { return runner->Run(); },
//                         *device));
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Sampling sampling,
//       TakeSamples(options, timer->get(), *monitor));
//
// What is called keeps its operands itself. The device must outlive the timer.

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"

namespace optrail::suites {

class CallTimer {
 public:
  virtual ~CallTimer() = default;

  static absl::StatusOr<std::unique_ptr<CallTimer>> Create(
      std::function<absl::Status(const ops::Call&)> run, ops::Device& device,
      proto::LaunchMode launch = proto::LAUNCH_MODE_UNSPECIFIED);

  // It returns the error of a call.
  virtual ops::Timer& get() = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_GRAPH_CALL_TIMER_H_
