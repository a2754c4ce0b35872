#ifndef OPTRAIL_OPS_CORE_MEASUREMENT_POLICY_H_
#define OPTRAIL_OPS_CORE_MEASUREMENT_POLICY_H_

// MeasurementPolicy says how a kind of device wants to be measured. A device
// type declares it as data (ops/core/device_type.h); tuning and benchmarks
// follow it and never ask for a device's kind.
//
//   MeasurementPolicy policy;              // a CPU: a process for each round
//   policy.interleaves_rounds = true;      // one process for a whole round
//
// It has no state and is safe to copy. The values for GPUs were measured:
// docs/method/tuning_sessions.md.

#include <cstdint>

#include "absl/types/optional.h"

namespace optrail::ops {

struct MeasurementPolicy {
  // The host may work while the device is measured: references are computed
  // and the next config is begun meanwhile.
  bool host_is_free = false;
  // Processes that may be opened, and wait idle, while another is measured; 0
  // where they would disturb it.
  int processes_ahead = 0;
  // Where opening disturbs and waiting does not: processes that are opened at
  // the same time, before any of them is measured.
  int processes_together = 1;
  // Processes that stay open after they were used, since giving a device back
  // takes longer than keeping it; 0: they are ended at once.
  int processes_kept = 0;
  // The speed of the device changes from one millisecond to the next, so one
  // process samples all contenders of a round interleaved. Times ranked that
  // way vary no more between processes than within one: rankings share the
  // process and the inputs of the search.
  bool interleaves_rounds = false;
  // The first rounds of a proof have a process each, and the others go round
  // among these; 0: every round has a process of its own.
  int proof_processes = 0;
  // The shortest sample of a round; starting a batch must not show in it.
  int64_t round_sample_ns = 0;
  // In a search a kernel follows others on a warm device: it warms up for at
  // most this long, and three samples are enough of one that is clearly slower
  // than the best. Absent: neither.
  absl::optional<int64_t> search_warm_up_ns;
  // Sets of inputs among which trials rotate.
  int input_sets = 3;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_MEASUREMENT_POLICY_H_
