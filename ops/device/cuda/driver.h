#ifndef OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_

// The CUDA driver, looked up at run time: nothing links against CUDA, so that
// one binary serves machines with and without it.

#include "absl/status/status.h"

namespace optrail::ops {

// Unavailable if the driver's library libcuda.so.1 is not on this machine, or
// refuses to start; the message says which.
absl::Status CudaDriverStatus();

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CUDA_DRIVER_H_
