#ifndef OPTRAIL_SUITES_WORKLOAD_NAMED_ONLY_H_
#define OPTRAIL_SUITES_WORKLOAD_NAMED_ONLY_H_

// Backends that run only where they are named: among all backends, or as
// advice, they would take minutes and win nothing.
//
//   if (!IsOnlyByName(*backend)) Add(backend);

#include "absl/strings/match.h"
#include "ops/core/backend.h"

namespace optrail::suites {

// Halide's own autoschedulers are there to be compared with our search of
// schedules; naive kernels are examples of slow code.
inline bool IsOnlyByName(const ops::Backend& backend) {
  return absl::StartsWith(backend.name(), "halide_") ||
         backend.name() == "naive";
}

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKLOAD_NAMED_ONLY_H_
