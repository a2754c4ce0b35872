// How long a plan takes: jobs that may pause, drawn over a year, with a week of
// slack at most, against the made-up intensities of grid.h.
//   bazel run //carbon:plan_benchmark

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "benchmark/benchmark.h"
#include "carbon/grid.h"
#include "carbon/plan.h"

namespace optrail::carbon {
namespace {

constexpr int kHours = 8760;

PlanProblem Year(int jobs, int most_slack) {
  PlanProblem problem;
  const int64_t start = *ParseTime("2026-01-01T00:00:00Z");
  const auto grid =
      ParseIntensity(ExampleIntensity("DE", start, kHours, 1), "example");
  OPTRAIL_CHECK(grid.ok()) << grid.status().message();
  problem.grams_per_kwh = *grid->Hourly("DE", start, kHours);
  problem.machines = 20;
  Rng rng(1);
  for (int i = 0; i < jobs; ++i) {
    PlanJob job;
    job.id = absl::StrCat(i);
    job.watts = static_cast<double>(100 + rng.UniformInt(600));
    job.hours = 1 + static_cast<int>(rng.UniformInt(12));
    const int slack = static_cast<int>(rng.UniformInt(most_slack + 1));
    job.release =
        static_cast<int>(rng.UniformInt(kHours - job.hours - slack + 1));
    job.deadline = job.release + job.hours + slack;
    problem.jobs.push_back(job);
  }
  return problem;
}

void BM_PlanAYear(benchmark::State& state) {
  const PlanProblem problem =
      Year(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) {
    const auto plan = MakePlan(problem);
    OPTRAIL_CHECK(plan.ok() && plan->unplaced == 0 && plan->exact);
    state.counters["saved_pct"] = 100 * plan->SavedAgainstNow();
    state.counters["most_pct"] = 100 * plan->MostThatCanBeSaved();
  }
}
BENCHMARK(BM_PlanAYear)
    ->ArgNames({"jobs", "slack_h"})
    ->Args({1000, 168})
    ->Args({10000, 24})
    ->Args({10000, 168})
    ->Unit(benchmark::kSecond)
    ->Iterations(1);

}  // namespace
}  // namespace optrail::carbon
