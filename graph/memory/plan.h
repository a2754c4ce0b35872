#ifndef OPTRAIL_GRAPH_MEMORY_PLAN_H_
#define OPTRAIL_GRAPH_MEMORY_PLAN_H_

// Plan gives every buffer an offset in one arena, so that buffers that are live
// at the same time never overlap and the arena is as small as can be found.
//
//   std::vector<MemoryBuffer> buffers = {{"x", 0, 2, 4096}, {"y", 1, 3, 1024}};
//   MemoryPlanOptions options;
//   options.alignment_bytes = 64;
//   OPTRAIL_ASSIGN_OR_RETURN(const MemoryPlan plan, Plan(buffers, options));
//   Use(plan.arena_bytes, plan.offsets[0]);
//
// Times are positions in a schedule and have no unit; sizes and offsets are
// bytes. Plan keeps no state and may be called from several threads at once. It
// checks its own result with CheckPlan before it returns it. The same input and
// seed give the same plan where first fit finds it, or branch and bound within
// a capacity; the other searches share out processor time.
//
// The problem is dynamic storage allocation, which is strongly NP-hard. Plan
// tries, in this order, and stops at a placement that is known to be minimal:
//
// 1. First fit in several orders (greedy.h).
// 2. For inputs of more than kMostExactBuffers, guided ejection of buffers that
//    stand above a limit, which is lowered step by step (ejection.h).
// 3. For smaller ones, branch and bound (exact.h), which
//    also proves that no placement within a limit exists. It follows the
//    inference of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
//    Hardware-Accelerated Machine Learning", ASPLOS 2023.
//
// docs/method/memory_planning.md has the formulas and what was measured.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optrail::graph {

// A buffer that is live in [lower, upper).
struct MemoryBuffer {
  std::string id;
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size_bytes = 0;
  // Where it must stand, e.g. because another program expects it there.
  std::optional<int64_t> fixed_offset;
  // Buffers of one non-empty group share their storage (views, operators that
  // work in place): they get one offset, and the storage is as large as the
  // largest and is live from the first lower to the last upper.
  std::string group;
};

struct MemoryPlanOptions {
  // Bytes that the arena may have. Plan stops at the first placement within
  // them; without a capacity it looks for the smallest arena.
  std::optional<int64_t> capacity_bytes;
  // Processor time of the calling thread.
  absl::Duration time_limit = absl::Seconds(6);
  // Every offset is a multiple of it. A power of two.
  int64_t alignment_bytes = 1;
  uint64_t seed = 1;
};

// The reason why the search ended, and so what is known about its plan.
enum class PlanProof {
  kNone,        // the time limit ended the search
  kMinimal,     // no placement has a smaller arena
  kFits,        // it is within the capacity; a smaller one was not looked for
  kInfeasible,  // no placement is within the capacity
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each buffer, in the order of the input
  int64_t arena_bytes = 0;       // the largest offset + size
  // No arena can be smaller: the largest sum of sizes that are live at once,
  // or more where the exact search proved more.
  int64_t lower_bound_bytes = 0;
  PlanProof proof = PlanProof::kNone;
  std::string method;  // what found the placement, e.g. "first fit by size"
  int64_t search_nodes = 0;
  absl::Duration processor_time;
};

// Larger inputs are left to first fit and ejection.
inline constexpr int kMostExactBuffers = 600;

// Invalid input (lower >= upper, a negative size or offset, sizes whose sum
// exceeds 2^60, an unaligned fixed offset, fixed buffers that overlap) is
// InvalidArgument that names the buffer. If the capacity cannot be met, the
// plan is the best that was found, and its arena_bytes exceeds the capacity.
absl::StatusOr<MemoryPlan> Plan(const std::vector<MemoryBuffer>& buffers,
                                const MemoryPlanOptions& options = {});

// "minimal", "fits", "infeasible" or "none".
std::string PlanProofName(PlanProof proof);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_PLAN_H_
