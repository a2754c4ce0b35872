#ifndef OPTRAIL_TRACKER_COMPARE_STEPS_H_
#define OPTRAIL_TRACKER_COMPARE_STEPS_H_

// Where the level of a short series steps, so that noise is not learned across
// a step and a window does not mix two levels.
//
//   const std::vector<int> starts = FindLevelSteps(levels, .01);
//
// Binary segmentation (Vostrikova, 1981) of medians, with a threshold that is
// hardly ever reached by chance. It needs two values behind a step where it is
// large and says nothing that anybody is told: changes of a series are found by
// detect/ and judged there.

#include <vector>

#include "absl/types/span.h"

namespace optrail::tracker {

// First indices of the stretches of one level; the first is 0. `expected` is
// the standard deviation of one value where the values themselves are too few
// to tell. One value far off is no step.
std::vector<int> FindLevelSteps(absl::Span<const double> values,
                                double expected);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_STEPS_H_
