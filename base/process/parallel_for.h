#ifndef OPTRAIL_BASE_PROCESS_PARALLEL_FOR_H_
#define OPTRAIL_BASE_PROCESS_PARALLEL_FOR_H_

// A loop whose turns do not need each other, on several threads.
//
//   std::vector<Judgement> judgements(series.size());
//   ParallelFor(series.size(), /*threads=*/0, [&](int64_t i) {
//     judgements[i] = Judge(series[i]);
//   });
//
// It is not for timing kernels: the threads start with the loop and end with
// it. Those of kernels are the CPU device's.

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace optrail {

// Calls `work(i)` once for each i below `count`, in no order, from the calling
// thread and `threads` - 1 others (0: as many as the machine has cores), and
// returns when all are done. `piece` turns are taken at a time: more where one
// takes less than a microsecond or neighbours share a cache line.
void ParallelFor(int64_t count, int threads,
                 absl::FunctionRef<void(int64_t)> work, int64_t piece = 1);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_PARALLEL_FOR_H_
