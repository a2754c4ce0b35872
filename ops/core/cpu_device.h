#ifndef OPTRAIL_OPS_CORE_CPU_DEVICE_H_
#define OPTRAIL_OPS_CORE_CPU_DEVICE_H_

// A CPU offers threads to kernels beside memory. ops/device/cpu implements it.
//
//   device.ParallelFor(rows, [&](int64_t row) { Normalise(row); });

#include <cstdint>

#include "ops/core/device.h"

namespace optrail::ops {

// Its loops are spread over threads(). They survive losing a core: waiting
// threads spin briefly and then sleep, and work is claimed, not assigned. While
// a loop of one thread runs, loops of others run on the thread that calls.
class CpuDevice : public Device, public ParallelLoops {
 public:
  static constexpr proto::DeviceKind kKind = proto::CPU;
  static constexpr char kKindName[] = "CPU";

  // Threads that a kernel may use.
  virtual int threads() const = 0;

  Stream stream() override { return {this, nullptr}; }

  // Evicts operands from all caches.
  virtual void FlushCaches() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_CPU_DEVICE_H_
