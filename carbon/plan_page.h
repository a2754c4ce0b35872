#ifndef OPTRAIL_CARBON_PLAN_PAGE_H_
#define OPTRAIL_CARBON_PLAN_PAGE_H_

// A plan as a page: the grid's intensity hour by hour, and below it when each
// job runs.
//
//   PlanFacts facts;
//   facts.start_unix_s = jobs.start_unix_s;
//   facts.zone = zone;
//   facts.stated = jobs.stated;
//   const std::string html = PlanPage(problem, plan, facts);

#include <cstdint>
#include <string>
#include <vector>

#include "carbon/jobs_csv.h"
#include "carbon/plan.h"

namespace optrail::carbon {

// Jobs beyond this many have no lane in the drawing; the table has all.
inline constexpr int kDrawnJobs = 40;

// PlanFacts has what a problem in whole hours does not say.
struct PlanFacts {
  int64_t start_unix_s = 0;  // of hour 0
  std::string zone;
  std::string intensity_kind;     // average, marginal or made-up
  std::string currency;           // of the prices
  std::vector<StatedJob> stated;  // by job, as their file says; or empty
};

// `plan` is that of `problem`.
std::string PlanPage(const PlanProblem& problem, const Plan& plan,
                     const PlanFacts& facts);

// The same as data: sums, the intensity (and price) of each hour, and the
// windows of each job.
std::string PlanJson(const PlanProblem& problem, const Plan& plan,
                     const PlanFacts& facts);

// How many jobs found no place, and whether it is proven that there is none.
// The plan has such jobs.
std::string UnplacedText(const Plan& plan);

// "2026-01-01T02:00Z 3h, 2026-01-01T09:00Z 1h": ascending hours as windows.
std::string HoursText(const std::vector<int>& hours, int64_t start_unix_s);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_PLAN_PAGE_H_
