#ifndef OPTRAIL_GRAPH_MEMORY_EJECTION_H_
#define OPTRAIL_GRAPH_MEMORY_EJECTION_H_

// Eject places blocks below a limit by guided ejection search (Nagata and
// Braysy, "A powerful route minimization heuristic for the vehicle routing
// problem with time windows", 2009), carried over to memory: a block that fits
// nowhere is placed where it removes the blocks of the least weight, which are
// then placed again. A block's weight grows whenever it failed to fit, so the
// search does not remove the same blocks forever.
//
//   Placer placer(problem);
//   if (Eject(problem, limit, order, deadline, 1, &placer) == 0) {
//     Use(placer.offsets());
//   }
//
// A step costs time in proportion to the neighbours of one block, where a
// repeated first fit would place all blocks again.

#include <cstdint>
#include <vector>

#include "graph/memory/greedy.h"
#include "graph/memory/problem.h"

namespace optrail::graph {

// Begins with first fit in `order`. Returns the fewest blocks that were left
// unplaced at any time; with 0, every block is placed and ends at or below
// `limit`.
int Eject(const MemoryProblem& problem, int64_t limit,
          const std::vector<int>& order, const ProcessorDeadline& deadline,
          uint64_t seed, Placer* placer);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_EJECTION_H_
