#ifndef OPTRAIL_OPS_DEVICE_CUDA_CEILINGS_H_
#define OPTRAIL_OPS_DEVICE_CUDA_CEILINGS_H_

// What a GPU can do at best, by kernels that do nothing else (ceilings.cu).

#include "absl/status/statusor.h"
#include "ops/device/cuda/measured_gpu.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops::cuda {

// Measures copying and reading a gigabyte, and reading what the L2 holds, each
// the best of a few; and the most FLOP/s of 16-bit products summed in f32, the
// median of some tenths of a second on data that is not zero, so that power
// bounds it as it bounds kernels. Without NVRTC, copying alone. A GPU's kernels
// have it whole: "one thread" and "all threads" are the same.
absl::StatusOr<proto::Ceilings> MeasureCudaCeilings(MeasuredGpu& device);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_CEILINGS_H_
