#ifndef OPTRAIL_CARBON_PLACE_JOBS_H_
#define OPTRAIL_CARBON_PLACE_JOBS_H_

// PlaceJobs finds the hours of jobs that cost least under a plan (plan.h),
// where an hour costs `costs[hour]` a kWh. It places as many jobs as it can
// find a place for, and among such placements takes the cheapest.
//
//   const Placement placement = PlaceJobs(problem.jobs, hourly, 4, {}, 100000);
//   const bool may_all_fit = placement.least_unplaced == 0;
//
// Candidates come from greedy orders (the largest first, start now, those that
// found no place first). A branch and bound over the starts of jobs that must
// not pause, whose bound is the flow in which the open ones may pause, then
// improves and proves them, as far as `work` goes. Work counts job-hours of the
// flows that are solved, so that a result does not depend on the machine.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "carbon/plan.h"

namespace optrail::carbon {

struct Placement {
  std::vector<std::vector<int>> hours;  // by job, ascending; empty: no place
  int unplaced = 0;
  double cost = 0;         // of those that are placed
  int least_unplaced = 0;  // no placement leaves fewer jobs out
  bool best = false;       // none that leaves as few out costs less
};

// `others` are hours by job of placements that are known; the result is at
// least as good as each. Windows lie within `costs`.
Placement PlaceJobs(absl::Span<const PlanJob> jobs,
                    absl::Span<const double> costs, int machines,
                    const std::vector<std::vector<std::vector<int>>>& others,
                    int64_t work);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_PLACE_JOBS_H_
