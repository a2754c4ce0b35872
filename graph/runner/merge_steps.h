#ifndef OPTRAIL_GRAPH_RUNNER_MERGE_STEPS_H_
#define OPTRAIL_GRAPH_RUNNER_MERGE_STEPS_H_

// MergeSteps makes one launch of generated steps that stand side by side and
// do not need each other, where the printer has a text for that (CUDA). Small
// kernels leave most of a GPU idle: the 26 bags of a recommender, or the copies
// of Q, K and V, run at the same time.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Program program, Lower(graph, target));
//   MergeSteps(*target.printer, &program);
//
// It comes before the arena is planned: what merged steps read and write is
// live together.

#include "graph/runner/codegen.h"
#include "graph/runner/program.h"

namespace optrail::graph {

void MergeSteps(const LoopPrinter& printer, Program* program);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_MERGE_STEPS_H_
