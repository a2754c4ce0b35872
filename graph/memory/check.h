#ifndef OPTRAIL_GRAPH_MEMORY_CHECK_H_
#define OPTRAIL_GRAPH_MEMORY_CHECK_H_

// CheckPlan tells whether a placement is valid. It shares no code with the
// planning methods: it sweeps over time and keeps the live buffers by offset.
//
//   OPTRAIL_RETURN_IF_ERROR(CheckPlan(buffers, plan.offsets, capacity, 64));
//
// Buffers of one group may overlap each other, and no others.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/memory/plan.h"

namespace optrail::graph {

// FailedPrecondition that names the buffers at fault: two live buffers that
// overlap, an offset that is negative, unaligned, beyond the capacity, not the
// fixed one, or different within a group. `offsets` is in the order of
// `buffers`. O(n log n) time.
absl::Status CheckPlan(const std::vector<MemoryBuffer>& buffers,
                       const std::vector<int64_t>& offsets,
                       int64_t capacity_bytes, int64_t alignment_bytes);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_CHECK_H_
