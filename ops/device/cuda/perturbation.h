#ifndef OPTRAIL_OPS_DEVICE_CUDA_PERTURBATION_H_
#define OPTRAIL_OPS_DEVICE_CUDA_PERTURBATION_H_

// This is ops/core/perturbation.h on a GPU: operands that stay in the L2, two
// calls at a time, and launches observed without hardware counters.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Timer> timer,
//       MakePerturbedCudaTimer(device, runnable, operands, mode, change));
//
// Kernels whose code is changed are the compiler's affair (ablation.h).

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "ops/core/runnable.h"
#include "ops/device/cuda/measured_gpu.h"
#include "tuning/proto/perturbation.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops::cuda {

// Aliased operands are hot, whatever `mode` says of caches: nothing travels.
absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedCudaTimer(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands,
    TimingMode mode, const proto::Perturbation& perturbation);

// Metrics of one call, one value each:
//
//   kernels           launches of a call
//   empty_launch_ns   a kernel that does nothing, in a captured graph
//
// and of its largest launch, by threads:
//
//   grid_blocks, block_threads
//   resident_blocks   that a multiprocessor holds at a time
//   multiprocessor_warps   the most that it can hold
//
// Works for libraries, too: a call is captured, and the graph is read.
absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCudaCalls(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_PERTURBATION_H_
