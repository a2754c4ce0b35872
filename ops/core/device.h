#ifndef OPTRAIL_OPS_CORE_DEVICE_H_
#define OPTRAIL_OPS_CORE_DEVICE_H_

// Device is where kernels run: it owns memory and threads or streams. The CPU
// is in ops/device/cpu.h; other kinds stand beside it behind this interface.
//
// A Buffer is one operand's memory: aligned to 64 bytes, on huge pages where
// the machine has them, with guard zones on both sides that reveal writes
// outside.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

class Buffer {
 public:
  virtual ~Buffer() = default;

  // Address in the device's memory; for the CPU, ordinary memory.
  virtual void* data() = 0;
  virtual size_t size_bytes() const = 0;
  virtual size_t page_bytes() const = 0;  // as granted by the system

  virtual absl::Status CopyFromHost(const void* source) = 0;
  virtual absl::Status CopyToHost(void* destination) = 0;

  // Rewrites the guard zones, and tells whether they were intact: DataLoss
  // names the side and the first byte that was overwritten.
  virtual void ArmGuards() = 0;
  virtual absl::Status CheckGuards() = 0;
};

// Whether somebody else had the device while a sample was taken, and what the
// machine was like meanwhile. It lives for one sampling: between its samples,
// warm-up included, nothing else is measured.
class Monitor {
 public:
  virtual ~Monitor() = default;

  virtual void Begin() = 0;
  // True if the sample that took `elapsed_ns` must be left out of estimates.
  virtual bool End(int64_t elapsed_ns) = 0;

  // Adds what was seen, at the end of the sampling.
  virtual void Fill(proto::Conditions* conditions) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual proto::DeviceKind kind() const = 0;
  virtual const proto::Hardware& hardware() const = 0;

  // Threads that a kernel may use (CPU); 1 for other kinds.
  virtual int threads() const = 0;

  // ResourceExhausted if the memory cannot be had.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(
      size_t size_bytes) = 0;

  // CPU only: calls body(i) for each i in [0, count), spread over threads(),
  // and returns when all are done. Survives losing a core: waiting threads
  // spin briefly and then sleep, and work is claimed, not assigned.
  virtual void ParallelFor(int64_t count,
                           absl::FunctionRef<void(int64_t)> body) = 0;

  // Waits for everything launched so far; reports a failed launch.
  virtual absl::Status Synchronize() = 0;

  // Evicts operands from all caches.
  virtual void FlushCaches() = 0;

  // After the first call of what is going to be sampled: libraries start
  // threads late, and a monitor watches those that exist.
  virtual std::unique_ptr<Monitor> MakeMonitor() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_DEVICE_H_
