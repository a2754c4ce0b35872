#ifndef OPTRAIL_OPS_DEVICE_CUDA_TIMER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_TIMER_H_

// The GPU's own clock: events around a batch of calls.
//
// STREAM launches call by call from the host, as eager code does; GRAPH
// captures the batch once and launches it at a stroke. Either way the GPU is
// kept busy with something else while the host enqueues the batch, so that the
// launch of the first call is not on the clock.
//
// Hot: the calls before the batch were the same ones. Cold: each call of a
// batch has operands of its own, copies that together exceed the L2 several
// times, and untimed calls go through the rest of them before the batch. What
// works in place has its sets; there the L2 is filled with something else.
//
// Timers of the same operands may take turns: their copies are the same memory
// with the same contents, the results of calls apart.

#include <memory>

#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/core/runnable.h"
#include "ops/device/cuda/measured_gpu.h"

namespace optrail::ops::cuda {

struct CudaTimerOptions {
  // In place of the runnable's own; null: that.
  void* workspace = nullptr;
  // Every second call is launched into a second stream, with a workspace of its
  // own, and may run beside the one before it.
  bool two_at_a_time = false;
};

// ResourceExhausted if there is no memory for the copies of cold mode.
absl::StatusOr<std::unique_ptr<Timer>> MakeCudaTimer(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands,
    TimingMode mode, const CudaTimerOptions& options = {});

// A launch of a kernel that does nothing, in a captured graph of many: the
// least that a call can take.
absl::StatusOr<double> EmptyLaunchNs(MeasuredGpu& device, Function empty);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_TIMER_H_
