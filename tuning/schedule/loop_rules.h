#ifndef OPTRAIL_TUNING_SCHEDULE_LOOP_RULES_H_
#define OPTRAIL_TUNING_SCHEDULE_LOOP_RULES_H_

// Shared by the rules about the loops of one stage (tiling_rule.cc cuts and
// orders them, loop_rules.cc marks them), and private to them.

#include <cstdint>
#include <vector>

#include "tuning/schedule/program.h"

namespace optrail::tuning {

// Levels of loops.
inline constexpr int kInner = 0, kMiddle = 1, kOuter = 2;

// Beyond the registers of any machine straight code only grows.
inline constexpr int64_t kMostUnrolled = 128;

// The axis that lies contiguously in memory, which vectors run along.
int VectorAxis(const Program& program, int s);

// The option that is nearest below `wanted`, or the first.
int64_t NearestBelow(const std::vector<int64_t>& options, int64_t wanted);

// Whether all that the last definition does is to add up partial results that
// lie side by side.
bool MergesPartialResults(const Program& program, int s);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_LOOP_RULES_H_
