#ifndef OPTRAIL_OPS_DEVICE_CPU_PERTURBATION_H_
#define OPTRAIL_OPS_DEVICE_CPU_PERTURBATION_H_

// What a CPU does for ops/core/perturbation.h: operands elsewhere in memory or
// nowhere, denormals off; and calls observed without hardware counters.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Timer> timer,
//       MakePerturbedCpuTimer(runnable, operands, device, mode, change));

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/cpu_device.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "ops/core/runnable.h"
#include "tuning/proto/perturbation.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedCpuTimer(
    Runnable& runnable, OperandSets& operands, CpuDevice& device,
    TimingMode mode, const proto::Perturbation& perturbation);

// Metrics, one value each, per call where that makes sense:
//
//   parallel_loops, parallel_ns       loops that were shared out, their time
//   slowest_thread_ns, mean_thread_ns inside loop bodies, summed over loops
//   empty_loop_ns                     a loop with nothing to do
//   call_ns, processor_share          wall time, and the part of it that the
//                                     calling thread had a core
//   system_share                      of its processor time, in the kernel
//   page_faults, switches             minor faults, and waits in the kernel
//   page_visits:K, pages_visited:K, regular_visits:K, adjacent_visits:K
//                                     as page_trace.h says, of operand K, or of
//                                     the workspace
absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCpuCalls(
    Runnable& runnable, OperandSets& operands, CpuDevice& device);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_PERTURBATION_H_
