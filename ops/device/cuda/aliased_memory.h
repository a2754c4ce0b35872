#ifndef OPTRAIL_OPS_DEVICE_CUDA_ALIASED_MEMORY_H_
#define OPTRAIL_OPS_DEVICE_CUDA_ALIASED_MEMORY_H_

// AliasedMemory is a range of device addresses behind which one granule of
// memory (2 MiB) lies again and again: whatever a kernel reads or writes there
// stays in the L2, while its code and its addresses are as before.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const auto memory, AliasedMemory::Make(driver, source, bytes, stream));
//   call.operands[0] = memory->data();
//
// The granule is filled with the first bytes of `source`, so inputs keep
// plausible values, and indices stay valid. The range begins at a multiple of
// the granule. The driver must outlive it, and nothing that was launched may
// use it when it goes.
//
// Unimplemented, "unsupported here: why", where the driver maps no memory
// (before CUDA 10.2, or a device without virtual memory management);
// ResourceExhausted where there is too little of it.

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops::cuda {

class AliasedMemory {
 public:
  static absl::StatusOr<std::shared_ptr<const AliasedMemory>> Make(
      const Driver& driver, const void* source, int64_t bytes, Stream stream);
  ~AliasedMemory();
  AliasedMemory(const AliasedMemory&) = delete;
  AliasedMemory& operator=(const AliasedMemory&) = delete;

  void* data() const { return reinterpret_cast<void*>(base_); }

 private:
  explicit AliasedMemory(const Driver& driver) : driver_(driver) {}
  absl::Status Map(size_t bytes);

  const Driver& driver_;
  size_t granule_ = 0;
  Address base_ = 0;
  size_t reserved_ = 0, mapped_ = 0;
  Memory memory_ = 0;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_ALIASED_MEMORY_H_
