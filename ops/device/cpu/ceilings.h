#ifndef OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_
#define OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_

// The limits of this machine as measured on it: what "% of roofline" refers to.
//
//   const proto::Ceilings ceilings = MeasureCeilings(*device);
//   const double bound_ns = RooflineTimeNs(flop, bytes, ceilings, threads);
//
// Each number is the best of several short runs: a ceiling is what the machine
// can do, and disturbances only ever lower a reading. Arithmetic is fused
// multiply-adds in single precision on the widest vectors that kernels use;
// memory is read, or copied with streaming stores, from buffers on huge pages.
//
// The memory buffers are four times the L2 of the threads that read them, at
// least 64 MiB. Where a virtual machine shares a larger L3 with others, part
// of them may stay in it: then "memory" means whatever lies behind the L2, as
// it does for an operator of that size.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/core/device.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops {

struct CeilingOptions {
  // Time for each of the eight numbers; all together takes about eight times
  // as long, plus a quarter of a second for buffers.
  absl::Duration time_per_number = absl::Milliseconds(120);
};

// Uses device.threads() threads for the numbers of "all threads". `device` must
// be a CPU. ResourceExhausted if there is no memory for the buffers.
absl::StatusOr<proto::Ceilings> MeasureCeilings(
    Device& device, const CeilingOptions& options = {});

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_CEILINGS_H_
