#ifndef OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
#define OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_

// Where the CUDA device will stand. Nothing links against CUDA: its libraries
// are looked up at run time, so that one binary serves machines with and
// without it. So far it only says why there is no such device.

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"

namespace optrail::ops {

// Unavailable if the driver's library libcuda.so.1 is not on this machine, or
// refuses to start; the message says which.
absl::Status CudaDriverStatus();

// CudaDriverStatus() if that is an error, else Unimplemented: this version has
// no CUDA kernels.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice();

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
