#ifndef OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_

// One operand in the GPU's memory, between guard zones.

#include <memory>

#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops::cuda {

// ResourceExhausted if there is not enough memory. `driver` and its context
// must outlive the buffer. The data is aligned to 256 bytes, as cuMemAlloc's.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateBuffer(const Driver& driver,
                                                       size_t size_bytes);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_
