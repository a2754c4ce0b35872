#ifndef OPTRAIL_OPS_DEVICE_CPU_DEVICE_H_
#define OPTRAIL_OPS_DEVICE_CPU_DEVICE_H_

// The CPU as a device: a persistent thread pool (thread_pool.h), and buffers on
// huge pages between guard zones.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<CpuDevice> cpu, MakeCpuDevice(2));
//   cpu->ParallelFor(rows, [&](int64_t row) { ... });
//
// Buffers. Each lies in its own mapping, whose neighbours are inaccessible, and
// is populated when it is allocated. From 16 KiB on, the
// mapping is made of 2 MiB pages where the system grants them: with small
// pages, which physical pages a process happens to get decides about conflicts
// in the L2 cache, and with them a reading by tens of percent. The data starts
// behind the guard zone, aligned to 64 bytes; where exactly depends on how
// many buffers the device has, so that operands do not all compete for the same
// cache sets or alias modulo 4 KiB, yet every process measures the same layout.
// Guard zones are NaN for floating-point kernels that read outside.
//
// FlushCaches() evicts the lines of all live buffers of the device by the
// processor's flush instructions. That holds for every cache level and core,
// whatever the machine says about its caches; virtual machines pass on the
// host's L3 (480 MiB beside two virtual cores), and reading twice that much
// before each sample would take longer than the samples. Memory that a kernel
// got elsewhere than from Device::Allocate is not flushed. Where there is no
// such instruction, twice the L3 is read, at most 256 MiB.

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "ops/core/cpu_device.h"

namespace optrail::ops {

struct CpuOptions {
  int threads = 1;
  // Pins the calling thread and the workers to one usable core each. Off by
  // default: a pinned thread cannot flee from a core that somebody else took.
  bool pin = false;
  // Evicts the lines of a range from all caches; what FlushCaches() does with
  // every buffer. Tests look on; empty: the processor's flush instruction.
  std::function<void(const void* begin, size_t size_bytes)> flush_lines;
};

// InvalidArgument unless 1 <= threads <= 1024 (more threads than cores are
// allowed), and with `pin`, at most one thread per usable core. The device must
// outlive its buffers. One thread at a time may call it, but for ParallelFor().
absl::StatusOr<std::unique_ptr<CpuDevice>> MakeCpuDevice(
    const CpuOptions& options);
absl::StatusOr<std::unique_ptr<CpuDevice>> MakeCpuDevice(int threads);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_DEVICE_H_
