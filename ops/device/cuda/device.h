#ifndef OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
#define OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_

// What a GPU offers to kernels while they are made ready: its driver, and
// compiled code loaded into a context. measured_gpu.h has the GPU on which
// kernels are measured, lib/cuda_context.h the one of a program's own context.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Module module, device.Load(code));
//
// The device's context is current on the thread that calls. Not thread-safe.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops::cuda {

class CudaDevice : public Device {
 public:
  static constexpr proto::DeviceKind kKind = proto::CUDA;
  static constexpr char kKindName[] = "CUDA";

  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const proto::Hardware& hardware() const override { return hardware_; }
  const Driver& driver() const { return driver_; }

  // Compiled code, loaded once: many configs of a search have the same, and
  // while another process opens a context loading and unloading wait for it.
  absl::StatusOr<Module> Load(const std::string& code);

  // A function may be launched with so much dynamic shared memory from now on,
  // and with as much as anybody allowed it before: configs of the same code
  // that ask for different amounts are measured interleaved.
  absl::Status AllowShared(Function function, int64_t bytes);

  // From now on a launch of a kernel that awaits its predecessors
  // (ops/lib/predecessors.cuh) overlaps their end, or does not. By default it
  // does not, so that a kernel that is measured has the GPU to itself.
  void OverlapLaunches(bool overlap) { launches_overlap_ = overlap; }
  bool launches_overlap() const { return launches_overlap_; }

 protected:
  CudaDevice(const Driver& driver, proto::Hardware hardware)
      : driver_(driver), hardware_(std::move(hardware)) {}

  // For destructors, while the context is current.
  void Unload();

  const Driver& driver_;

 private:
  const proto::Hardware hardware_;
  absl::flat_hash_map<std::string, Module> modules_;     // by their code
  absl::flat_hash_map<Function, int64_t> shared_bytes_;  // that are allowed
  bool launches_overlap_ = false;
};

// The fingerprint of a device (CUdevice), without a context. What NVML tells
// (the driver's version is an epoch) is no part of it.
absl::StatusOr<proto::Hardware> HardwareOf(const Driver& driver, int device);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_DEVICE_H_
