#ifndef OPTRAIL_CARBON_PLAN_PAGE_H_
#define OPTRAIL_CARBON_PLAN_PAGE_H_

// A plan as a page: the grid's intensity hour by hour, and below it when each
// job runs.
//
//   const std::string html = PlanPage(problem, plan, jobs.start_unix_s, zone);

#include <cstdint>
#include <string>

#include "carbon/plan.h"

namespace optrail::carbon {

// Jobs beyond this many have no lane in the drawing; the table has all.
inline constexpr int kDrawnJobs = 40;

// `plan` is that of `problem`, whose hour 0 begins at `start_unix_s`.
std::string PlanPage(const PlanProblem& problem, const Plan& plan,
                     int64_t start_unix_s, const std::string& zone);

// The same as data: sums, the intensity (and price) of each hour, and the
// windows of each job.
std::string PlanJson(const PlanProblem& problem, const Plan& plan,
                     int64_t start_unix_s, const std::string& zone);

// How many jobs found no place, and whether it is proven that there is none.
// The plan has such jobs.
std::string UnplacedText(const Plan& plan);

// "2026-01-01T02:00Z 3h, 2026-01-01T09:00Z 1h": ascending hours as windows.
std::string HoursText(const std::vector<int>& hours, int64_t start_unix_s);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_PLAN_PAGE_H_
