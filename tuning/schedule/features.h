#ifndef OPTRAIL_TUNING_SCHEDULE_FEATURES_H_
#define OPTRAIL_TUNING_SCHEDULE_FEATURES_H_

// Features of a program: the numbers of which a cost model makes a guess, read
// off loops and access patterns, before anything is compiled. Of all stages
// together: work, turns of loops, instructions on vectors and how many of them
// read. Each of the stages with the most work (the rest is small change) has:
//
//   work done, and how much of it more than once (computed again elsewhere)
//   lanes, unrolled operations, vectors that are live in the innermost level
//   reads by vector: contiguous, one value for all lanes, gathered
//   bytes that pass into caches of 32 KiB, 1 MiB and 16 MiB: what the largest
//     group of inner loops whose data fit touches, times how often it runs
//   grain of the parallel loop; how deep the stage is computed; what it keeps
//
// All but counts are logarithms, to base 2. docs/method/schedules.md has
// formulas.

#include <vector>

#include "tuning/schedule/program.h"

namespace optrail::tuning {

// Returns them; the length is the same for every program.
std::vector<float> FeaturesOf(const Program& program);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_FEATURES_H_
