#ifndef OPTRAIL_GRAPH_MEMORY_EXACT_H_
#define OPTRAIL_GRAPH_MEMORY_EXACT_H_

// SearchExactly finds a placement within a capacity, or proves that there is
// none, by branch and bound.
//
//   const ExactResult result = SearchExactly(problem, capacity, deadline, 1);
//   if (result.outcome == ExactOutcome::kFound) Use(result.offsets);
//
// Every section has a floor: the lowest byte at which anything may still be
// placed. The search takes a section at the bottom of the skyline and branches
// on the block that stands there; the last branch leaves a gap. Of all such
// sections it takes the one with the fewest branches, so what is forced is
// done first. The following comes from Moffitt, "MiniMalloc: A Lightweight
// Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023:
//
// - Canonical solutions: a block rests on another one or on the bottom, no
//   block fits into a gap below it, and of two blocks with one lifetime that
//   touch, the larger stands below. Every solvable input has such a solution.
// - Inference: a floor rises to the lowest offset that the unplaced blocks of
//   its section can have, an offset to the floors of its block. A section is
//   infeasible where, for some height, what cannot start below it does not fit
//   above it.
// - Decomposition: blocks with no section in common are searched apart.
//
// And beyond that: parts of the search that failed are remembered by a hash of
// their unplaced blocks and floors, and the search restarts with other orders
// of the branches (Luby's sequence of node limits). The hashes are kept over
// restarts. Two states with one 64-bit hash would be taken for one; a
// found placement is checked by the caller, a proof rests on there being none.
//
// Problems with thousands of blocks are better left to ejection.h: a node costs
// time in proportion to the blocks of its part.

#include <cstdint>
#include <vector>

#include "graph/memory/problem.h"

namespace optrail::graph {

enum class ExactOutcome { kFound, kInfeasible, kTimeLimit };

struct ExactResult {
  ExactOutcome outcome = ExactOutcome::kTimeLimit;
  std::vector<int64_t> offsets;  // of each block, where found
  int64_t nodes = 0;
};

// Thread-compatible; nothing is kept between calls.
ExactResult SearchExactly(const MemoryProblem& problem, int64_t capacity,
                          const ProcessorDeadline& deadline, uint64_t seed);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_EXACT_H_
