#ifndef OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_
#define OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_

// Was a sample on the GPU disturbed: by heat or a power brake, or by another
// process that computes there. A kernel that runs into the power limit by
// itself is no disturbance: it is measured as it will run.
//
// Also the energy that the GPU counted, as a meter.

#include <memory>

#include "ops/core/device.h"
#include "ops/device/cuda/nvml.h"

namespace optrail::ops::cuda {

// `nvml` must outlive them. nullptr: nothing is known, nothing is disturbed.
std::unique_ptr<Monitor> MakeCudaMonitor(const Nvml* nvml);

// Unavailable where the GPU does not count energy.
absl::StatusOr<std::unique_ptr<Meter>> MakeCudaEnergyMeter(const Nvml& nvml);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_MONITOR_H_
