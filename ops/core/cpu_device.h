#ifndef OPTRAIL_OPS_CORE_CPU_DEVICE_H_
#define OPTRAIL_OPS_CORE_CPU_DEVICE_H_

// What a CPU offers to kernels beyond memory: threads. See ops/device/cpu for
// the one there is.
//
//   device.ParallelFor(rows, [&](int64_t row) { Normalise(row); });

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "ops/core/device.h"

namespace optrail::ops {

class CpuDevice : public Device {
 public:
  // Threads that a kernel may use.
  virtual int threads() const = 0;

  // Calls body(i) for each i in [0, count), spread over threads(), and returns
  // when all are done. Survives losing a core: waiting threads spin briefly and
  // then sleep, and work is claimed, not assigned.
  virtual void ParallelFor(int64_t count,
                           absl::FunctionRef<void(int64_t)> body) = 0;

  // Evicts operands from all caches.
  virtual void FlushCaches() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_CPU_DEVICE_H_
