#ifndef OPTRAIL_CARBON_PLAN_H_
#define OPTRAIL_CARBON_PLAN_H_

// MakePlan places jobs into the hours in which they emit least, under release
// times, deadlines, a number of machines and a limit of cost.
//
//   PlanProblem problem;
//   problem.grams_per_kwh = hourly_intensity;
//   problem.machines = 4;
//   problem.jobs.push_back({"nightly", 450, 3, 0, 24, true});
//   OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(problem, options));
//   Use(plan.jobs[0].hours, plan.SavedAgainstNow());
//
// A preemptible job (a tuning session resumes, so it may pause at hour
// boundaries) is hours of flow from the job through hours to machines; all of
// them together are a min-cost flow, solved exactly (network simplex). Where
// there are jobs that must not pause, place_jobs.h searches; small problems it
// solves exactly, of others the plan says how far from the best it can be at
// most, by prices of machines in each hour (Lagrange). A limit of cost is a
// price on money, found by bisection; it, too, comes with a bound.
//
// Units: hours from the start of the problem, watts, grams of CO2e per kWh.
// docs/method/carbon.md describes the model.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace optrail::carbon {

struct PlanJob {
  std::string id;
  double watts = 0;
  int hours = 0;
  int release = 0;   // the first hour in which it may run
  int deadline = 0;  // it is done before this hour begins
  bool preemptible = true;
};

struct PlanProblem {
  std::vector<double> grams_per_kwh;  // one an hour
  std::vector<double> price_per_kwh;  // likewise, or empty
  absl::optional<double> most_cost;   // of all jobs together
  int machines = 1;                   // each runs one job an hour
  std::vector<PlanJob> jobs;
};

struct PlacedJob {
  std::vector<int> hours;  // ascending; empty: it could not be placed
  double grams = 0;
  double cost = 0;
};

struct Plan {
  std::vector<PlacedJob> jobs;  // in the order of the problem's
  int unplaced = 0;             // jobs for which no place was found
  int least_unplaced = 0;       // no plan of these machines leaves fewer out
  double kwh = 0;               // of those that are placed
  double grams = 0, cost = 0;
  // The jobs that have a place, each as soon as it is released and a machine is
  // free.
  double now_grams = 0, now_cost = 0;
  // No plan of these jobs emits less; and no plan would even if machines were
  // unlimited.
  double bound_grams = 0, unlimited_grams = 0;
  bool exact = false;  // grams is the least possible

  // Fractions of what starting now emits.
  double SavedAgainstNow() const;
  double MostThatCanBeSaved() const;
  // Returns the most that the plan loses against the best, as a fraction of it.
  double Gap() const;
};

struct PlanOptions {
  // Steps of the bisection, and steps towards the best bound where there are
  // jobs that must not pause.
  int bisections = 40;
  int price_steps = 100;
  // Job-hours of flows that a search may solve (place_jobs.h): for a plan, and
  // for one of the prices on money that are tried.
  int64_t work = 400'000;
  int64_t work_of_a_price = 20'000;
};

// InvalidArgument names the job and field that make no sense; NotFound if no
// plan that keeps the limit of cost was found: the message says whether there
// is none. Jobs that find no place are left out and counted.
absl::StatusOr<Plan> MakePlan(const PlanProblem& problem,
                              const PlanOptions& options = {});

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_PLAN_H_
