#ifndef OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_
#define OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_

// The limits of this machine as measured on it: what "% of roofline" refers to.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::Ceilings ceilings,
//                            MeasureCeilings(*cpu));
//   const double bound_ns = tuning::RooflineOf(flop, bytes, 0, {}, ceilings,
//                                              threads, threads).time_ns;
//
// Each number is the best of several short runs: a ceiling is what the machine
// can do, and disturbances only ever lower a reading. Arithmetic is fused
// multiply-adds in single precision on the widest vectors that kernels use;
// memory is read, or copied with streaming stores, from buffers on huge pages.
//
// Each level is read from a buffer that lies in it and not in a smaller one.
// The sizes of caches that the machine hides are found in the rates of buffers
// of growing size (cache_sizes.h), which takes as long as seven more numbers.
// Memory is read from at least three times the L3 that the machine shows, four
// times the L2 of the threads that read, and 256 MiB: 64 would lie inside the
// L3 of many servers. An eighth of the machine's memory is the limit; where
// that is less than twice the L3 (Ceilings.memory_buffer_bytes says what it
// was), "memory" may mean whatever lies behind the L2.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/core/cpu_device.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops {

struct CeilingOptions {
  // Time for each of the nine numbers; all together takes about nine times as
  // long, plus a second for each 3 GB of buffers.
  absl::Duration time_per_number = absl::Milliseconds(120);
};

// How many times the L3 the buffer for reading memory shall have.
inline constexpr int64_t kL3Multiple = 3;

// Uses device.threads() threads for the numbers of "all threads".
// ResourceExhausted if there is no memory for the buffers.
absl::StatusOr<proto::Ceilings> MeasureCeilings(
    CpuDevice& device, const CeilingOptions& options = {});

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_
