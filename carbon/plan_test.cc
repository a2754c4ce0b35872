#include "carbon/plan.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::carbon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Seed of the random instances below: OPTRAIL_TEST_SEED=7 draws others.
uint64_t SeedOr(uint64_t usual) {
  const char* const text = std::getenv("OPTRAIL_TEST_SEED");
  const uint64_t seed =
      text == nullptr ? usual : std::strtoull(text, nullptr, 10) + usual;
  std::cout << "seed " << seed << "\n";
  return seed;
}

double GramsOf(const PlanProblem& problem, int job,
               const std::vector<int>& hours) {
  double grams = 0;
  for (const int hour : hours) {
    grams += problem.jobs[job].watts / 1000 * problem.grams_per_kwh[hour];
  }
  return grams;
}

// The least that any placement of all jobs emits; infinity if there is none.
// Every placement is tried.
double BruteForce(const PlanProblem& problem, size_t job,
                  std::vector<int>* room) {
  if (job == problem.jobs.size()) return 0;
  const PlanJob& one = problem.jobs[job];
  double best = kInfinity;
  std::vector<int> hours;
  const std::function<void(int)> choose = [&](int from) {
    if (static_cast<int>(hours.size()) == one.hours) {
      const bool whole = hours.back() - hours.front() + 1 == one.hours;
      if (!one.preemptible && !whole) return;
      for (const int hour : hours) --(*room)[hour];
      best = std::min(best, GramsOf(problem, static_cast<int>(job), hours) +
                                BruteForce(problem, job + 1, room));
      for (const int hour : hours) ++(*room)[hour];
      return;
    }
    for (int hour = from; hour < one.deadline; ++hour) {
      if ((*room)[hour] == 0) continue;
      hours.push_back(hour);
      choose(hour + 1);
      hours.pop_back();
    }
  };
  choose(one.release);
  return best;
}

double BruteForce(const PlanProblem& problem) {
  std::vector<int> room(problem.grams_per_kwh.size(), problem.machines);
  return BruteForce(problem, 0, &room);
}

// The least number of jobs without which the others fit.
int FewestOut(const PlanProblem& problem) {
  const auto jobs = static_cast<int>(problem.jobs.size());
  int fewest = jobs;
  for (int out = 0; out < 1 << jobs; ++out) {
    PlanProblem rest = problem;
    rest.jobs.clear();
    for (int j = 0; j < jobs; ++j) {
      if ((out >> j & 1) == 0) rest.jobs.push_back(problem.jobs[j]);
    }
    if (BruteForce(rest) == kInfinity) continue;
    fewest = std::min(fewest, jobs - static_cast<int>(rest.jobs.size()));
  }
  return fewest;
}

PlanProblem RandomProblem(Rng& rng, bool preemptible) {
  PlanProblem problem;
  const int horizon = 3 + static_cast<int>(rng.UniformInt(5));
  for (int hour = 0; hour < horizon; ++hour) {
    // Often equal, so that ties are common.
    problem.grams_per_kwh.push_back(
        static_cast<double>(50 * (1 + rng.UniformInt(12))));
  }
  problem.machines = 1 + static_cast<int>(rng.UniformInt(2));
  const int jobs = 1 + static_cast<int>(rng.UniformInt(4));
  for (int i = 0; i < jobs; ++i) {
    PlanJob job;
    job.id = std::to_string(i);
    job.watts = static_cast<double>(100 * (1 + rng.UniformInt(7)));
    job.release = static_cast<int>(rng.UniformInt(horizon - 1));
    job.deadline = job.release + 1 +
                   static_cast<int>(rng.UniformInt(horizon - job.release));
    job.hours =
        1 + static_cast<int>(rng.UniformInt(job.deadline - job.release));
    job.preemptible = preemptible;
    problem.jobs.push_back(job);
  }
  return problem;
}

// Each job in its window, at its length, no hour above its machines.
void ExpectSound(const PlanProblem& problem, const Plan& plan) {
  std::vector<int> used(problem.grams_per_kwh.size(), 0);
  for (size_t j = 0; j < plan.jobs.size(); ++j) {
    const std::vector<int>& hours = plan.jobs[j].hours;
    if (hours.empty()) continue;
    const PlanJob& job = problem.jobs[j];
    ASSERT_EQ(static_cast<int>(hours.size()), job.hours);
    EXPECT_GE(hours.front(), job.release);
    EXPECT_LT(hours.back(), job.deadline);
    EXPECT_EQ(std::set<int>(hours.begin(), hours.end()).size(), hours.size());
    if (!job.preemptible) {
      EXPECT_EQ(hours.back() - hours.front() + 1, job.hours);
    }
    for (const int hour : hours) ++used[hour];
  }
  for (const int jobs : used) EXPECT_LE(jobs, problem.machines);
}

TEST(PlanTest, IsTheBestOfAllOnAThousandInstancesThatMayPause) {
  Rng rng(SeedOr(1));
  int solved = 0;
  for (int seed = 0; solved < 1000; ++seed) {
    const PlanProblem problem = RandomProblem(rng, /*preemptible=*/true);
    const double best = BruteForce(problem);
    const auto plan = MakePlan(problem);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectSound(problem, *plan);
    if (best == kInfinity) {
      EXPECT_GT(plan->unplaced, 0) << seed;
      continue;
    }
    ++solved;
    ASSERT_EQ(plan->unplaced, 0) << seed;
    ASSERT_NEAR(plan->grams, best, 1e-6 * best) << seed;
    EXPECT_TRUE(plan->exact) << seed;
    EXPECT_LE(plan->unlimited_grams, best * (1 + 1e-9)) << seed;
  }
}

TEST(PlanTest, JobsThatMustNotPauseAreWithinTheBoundThatThePlanStates) {
  Rng rng(SeedOr(2));
  int optimal = 0, exact = 0, solved = 0;
  for (int seed = 0; solved < 1000; ++seed) {
    PlanProblem problem = RandomProblem(rng, /*preemptible=*/false);
    for (PlanJob& job : problem.jobs) {
      job.preemptible = rng.UniformInt(3) == 0;
    }
    const double best = BruteForce(problem);
    const auto plan = MakePlan(problem);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectSound(problem, *plan);
    if (best == kInfinity) {
      EXPECT_GT(plan->least_unplaced, 0) << seed;
      EXPECT_EQ(plan->unplaced, FewestOut(problem)) << seed;
      continue;
    }
    ++solved;
    ASSERT_EQ(plan->unplaced, 0) << seed;
    EXPECT_GE(plan->grams, best * (1 - 1e-6)) << seed;
    EXPECT_LE(plan->bound_grams, best * (1 + 1e-6)) << seed;
    EXPECT_LE(plan->grams, plan->bound_grams * (1 + plan->Gap()) * (1 + 1e-9));
    if (plan->exact) {
      EXPECT_NEAR(plan->grams, best, 1e-6 * best) << seed;
    }
    EXPECT_LE(plan->unlimited_grams, best * (1 + 1e-9)) << seed;
    optimal += plan->grams <= best * (1 + 1e-6);
    exact += plan->exact;
  }
  // The search is complete on instances as small as these.
  EXPECT_EQ(optimal, solved);
  EXPECT_EQ(exact, solved);
}

// A job that must not pause would take the cheapest hour, and a job that may
// pause cannot do without it.
TEST(PlanTest, AJobLeavesAnHourToOneThatNeedsIt) {
  PlanProblem problem;
  problem.grams_per_kwh = {346, 200, 173, 180};
  problem.jobs = {{"a", 400, 3, 1, 4, true}, {"b", 200, 1, 0, 4, false}};
  const Plan plan = *MakePlan(problem);
  EXPECT_EQ(plan.unplaced, 0);
  EXPECT_THAT(plan.jobs[1].hours, ElementsAre(0));
  EXPECT_TRUE(plan.exact);
}

// Cuts a rectangle of machines and hours into jobs without a gap, so that a
// plan exists and few others do.
TEST(PlanTest, FullMachinesLoseNoJob) {
  Rng rng(SeedOr(3));
  int lost = 0;
  for (int seed = 0; seed < 12; ++seed) {
    PlanProblem problem;
    problem.machines = 2;
    for (int hour = 0; hour < 48; ++hour) {
      problem.grams_per_kwh.push_back(
          static_cast<double>(50 + rng.UniformInt(450)));
    }
    for (int machine = 0; machine < problem.machines; ++machine) {
      for (int hour = 0; hour < 48;) {
        PlanJob job;
        job.id = absl::StrCat(machine, " ", hour);
        job.watts = static_cast<double>(100 * (1 + rng.UniformInt(9)));
        job.hours = std::min<int>(48 - hour, 1 + rng.UniformInt(6));
        job.release = std::max<int>(0, hour - rng.UniformInt(6));
        job.deadline = std::min<int>(48, hour + job.hours + rng.UniformInt(6));
        job.preemptible = rng.UniformInt(2) == 0;
        hour += job.hours;
        // Some of the machines' time stays free.
        if (rng.UniformInt(6) > 0) problem.jobs.push_back(job);
      }
    }
    const Plan plan = *MakePlan(problem);
    ExpectSound(problem, plan);
    EXPECT_EQ(plan.least_unplaced, 0) << seed;  // no proof of what is not so
    lost += plan.unplaced;
  }
  EXPECT_EQ(lost, 0);
}

TEST(PlanTest, ALimitOfCostIsRefusedOnlyIfNoPlanKeepsIt) {
  Rng rng(SeedOr(4));
  for (int solved = 0, seed = 0; solved < 100; ++seed) {
    PlanProblem problem = RandomProblem(rng, /*preemptible=*/false);
    for (PlanJob& job : problem.jobs) {
      job.preemptible = rng.UniformInt(3) == 0;
    }
    for (size_t hour = 0; hour < problem.grams_per_kwh.size(); ++hour) {
      problem.price_per_kwh.push_back(
          .1 * static_cast<double>(1 + rng.UniformInt(9)));
    }
    PlanProblem priced = problem;
    priced.grams_per_kwh = problem.price_per_kwh;
    const double cheapest = BruteForce(priced);
    if (cheapest == kInfinity) continue;
    ++solved;
    problem.most_cost = cheapest * 1.0001;
    const auto plan = MakePlan(problem);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status();
    EXPECT_EQ(plan->unplaced, 0) << seed;
    EXPECT_LE(plan->cost, *problem.most_cost) << seed;
    problem.most_cost = cheapest * .9999;
    EXPECT_THAT(std::string(MakePlan(problem).status().message()),
                HasSubstr("no plan keeps the cost within"))
        << seed;
  }
}

TEST(PlanTest, OfHoursThatAreAsGoodTheFirstOnesAreTakenWithoutAPause) {
  PlanProblem problem;
  problem.grams_per_kwh.assign(24, 300);
  problem.jobs = {{"a", 1000, 3, 8, 24, true},
                  {"b", 0, 3, 8, 24, true},
                  {"c", 1000, 2, 8, 24, false}};
  problem.machines = 3;
  const Plan plan = *MakePlan(problem);
  EXPECT_THAT(plan.jobs[0].hours, ElementsAre(8, 9, 10));
  EXPECT_THAT(plan.jobs[1].hours, ElementsAre(8, 9, 10));
  EXPECT_THAT(plan.jobs[2].hours, ElementsAre(8, 9));
}

TEST(PlanTest, SaysWhatIsSavedAgainstNowAndAtMost) {
  PlanProblem problem;
  problem.grams_per_kwh = {400, 100, 300, 200};
  problem.jobs = {{"a", 1000, 2, 0, 4, true}, {"b", 1000, 1, 0, 4, true}};
  const Plan plan = *MakePlan(problem);
  EXPECT_DOUBLE_EQ(plan.grams, 600);      // 100, 200 and 300
  EXPECT_DOUBLE_EQ(plan.now_grams, 800);  // 400, 100 and 300
  EXPECT_DOUBLE_EQ(plan.unlimited_grams, 400);
  EXPECT_DOUBLE_EQ(plan.SavedAgainstNow(), .25);
  EXPECT_DOUBLE_EQ(plan.MostThatCanBeSaved(), .5);
  EXPECT_DOUBLE_EQ(plan.kwh, 3);
  EXPECT_TRUE(plan.exact);
}

TEST(PlanTest, ALimitOfCostMovesJobsToCheaperHours) {
  PlanProblem problem;
  problem.grams_per_kwh = {100, 200, 300, 400};
  problem.price_per_kwh = {4, 3, 2, 1};
  for (int i = 0; i < 2; ++i) {
    problem.jobs.push_back({std::to_string(i), 1000, 1, 0, 4, true});
  }
  EXPECT_DOUBLE_EQ(MakePlan(problem)->cost, 7);
  problem.most_cost = 4;
  const Plan plan = *MakePlan(problem);
  EXPECT_LE(plan.cost, 4);
  // 3 + 1 and 2 + 1 are within the limit; the former emits less.
  EXPECT_GE(plan.grams, 600);
  EXPECT_LE(plan.bound_grams, 600 + 1e-6);
  EXPECT_LE(plan.grams, plan.bound_grams * (1 + plan.Gap()) * (1 + 1e-9));
  problem.most_cost = 2;
  EXPECT_EQ(MakePlan(problem).status().code(), absl::StatusCode::kNotFound);
  problem.price_per_kwh.clear();
  EXPECT_THAT(std::string(MakePlan(problem).status().message()),
              HasSubstr("needs prices"));
}

TEST(PlanTest, WhatDoesNotFitIsCountedAndLeftOut) {
  PlanProblem problem;
  problem.grams_per_kwh = {100, 200};
  for (int i = 0; i < 3; ++i) {
    problem.jobs.push_back({std::to_string(i), 500, 1, 0, 2, i != 1});
  }
  const Plan plan = *MakePlan(problem);
  EXPECT_EQ(plan.unplaced, 1);
  ExpectSound(problem, plan);
}

TEST(PlanTest, RefusesWhatMakesNoSense) {
  PlanProblem problem;
  problem.grams_per_kwh = {100, 200};
  const auto message = [&](PlanJob job) {
    problem.jobs = {job};
    return std::string(MakePlan(problem).status().message());
  };
  EXPECT_THAT(message({"a", 100, 3, 0, 2, true}),
              HasSubstr("job \"a\": deadline is 2, expected at least 3"));
  EXPECT_THAT(message({"a", 100, 1, 0, 3, true}), HasSubstr("at most 2"));
  EXPECT_THAT(message({"a", -1, 1, 0, 2, true}), HasSubstr("watts is -1"));
  EXPECT_THAT(message({"a", 100, 0, 0, 2, true}), HasSubstr("hours is 0"));
  EXPECT_THAT(message({"a", 100, 1, -1, 2, true}), HasSubstr("release is -1"));
  EXPECT_THAT(message({"a", kInfinity, 1, 0, 2, true}), HasSubstr("watts"));
  problem.machines = 0;
  EXPECT_THAT(message({"a", 1, 1, 0, 2, true}), HasSubstr("machines is 0"));
}

TEST(PlanTest, NoJobsEmitNothing) {
  PlanProblem problem;
  problem.grams_per_kwh = {100};
  const Plan plan = *MakePlan(problem);
  EXPECT_EQ(plan.grams, 0);
  EXPECT_EQ(plan.SavedAgainstNow(), 0);
  EXPECT_TRUE(plan.exact);
}

}  // namespace
}  // namespace optrail::carbon
