#ifndef OPTRAIL_GRAPH_RUNNER_ARENA_H_
#define OPTRAIL_GRAPH_RUNNER_ARENA_H_

// FindArenaBuffers says which buffers the arena of a program has and when each
// is live:
//
//   const ArenaBuffers arena = FindArenaBuffers(program);
//   OPTRAIL_ASSIGN_OR_RETURN(const MemoryPlan plan, Plan(arena.buffers));
//   Use(plan.offsets[arena.place.at(storage)]);
//
// Times are the steps of a call, without those that run once before. A step
// that may work in place puts its result where an operand stands that nobody
// reads later; both are of one group then.

#include <cstdint>
#include <map>
#include <vector>

#include "graph/memory/plan.h"
#include "graph/runner/program.h"

namespace optrail::graph {

struct ArenaBuffers {
  std::vector<MemoryBuffer> buffers;  // called after the step that writes them
  std::map<int, size_t> place;        // of each storage in the arena
  int64_t unplanned_bytes = 0;        // the sum of their sizes
};

ArenaBuffers FindArenaBuffers(const Program& program);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_ARENA_H_
