#ifndef OPTRAIL_CARBON_FLOW_H_
#define OPTRAIL_CARBON_FLOW_H_

// PlaceHours is the min-cost flow under a plan (plan.h): jobs that may pause,
// hours that hold so many of them, and what a job costs in an hour.
//
//   const FlowPlan plan = PlaceHours({{2, 0, 24, 450}}, hourly, room);
//   Use(plan.hours[0]);  // two of the hours 0 to 23
//
// Costs are rounded to 1e-8 of the dearest hour of the most powerful job,
// so that the simplex counts in integers; within that the result is exact.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optrail::carbon {

struct FlowJob {
  int hours = 0;
  int release = 0, deadline = 0;  // [release, deadline)
  double weight = 0;              // times the hour's cost: what the job adds
};

struct FlowPlan {
  std::vector<std::vector<int>> hours;  // by job, ascending
  int64_t missing = 0;                  // hours of jobs that found no place
  // The saving of room for one more job in each hour (the dual solution).
  std::vector<double> prices;
};

// `cost` and `room` have one element an hour; windows lie within them. The plan
// places the largest possible number of hours, at the least cost.
FlowPlan PlaceHours(const std::vector<FlowJob>& jobs,
                    absl::Span<const double> cost, absl::Span<const int> room);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_FLOW_H_
