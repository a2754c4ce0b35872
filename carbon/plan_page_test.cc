#include "carbon/plan_page.h"

#include <string>

#include "carbon/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail::carbon {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kStart = 1'767'225'600;  // 2026-01-01T00:00:00Z

PlanProblem Problem() {
  PlanProblem problem;
  problem.grams_per_kwh = {300, 100, 400, 100, 300, 300};
  PlanJob job;
  job.id = "nightly<b>";
  job.watts = 1000;
  job.hours = 2;
  job.deadline = 6;
  problem.jobs = {job};
  return problem;
}

PlanFacts Facts() {
  PlanFacts facts;
  facts.start_unix_s = kStart;
  facts.zone = "DE";
  facts.intensity_kind = "average";
  return facts;
}

TEST(PlanPageTest, KeepsWhatTheFileSaysAndLabelsEstimates) {
  PlanProblem problem = Problem();
  problem.price_per_kwh.assign(6, .5);
  const auto plan = MakePlan(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  PlanFacts facts = Facts();
  facts.currency = "EUR";
  facts.intensity_kind = kMadeUpKind;
  facts.stated.resize(1);
  facts.stated[0] = {
      1500, 4. / 3, kStart + 60, kStart + 6 * 3600 + 60, "20260101T000000Z-1",
      true};
  const auto json = nlohmann::json::parse(PlanJson(problem, *plan, facts));
  EXPECT_EQ(json["made_up"], true);
  EXPECT_EQ(json["currency"], "EUR");
  const auto& job = json["jobs"][0];
  EXPECT_EQ(job["watts"], 1000);
  EXPECT_EQ(job["stated"]["watts"], 1500);
  EXPECT_EQ(job["stated"]["release"], "2026-01-01T00:01:00Z");
  EXPECT_EQ(job["stated"]["session"], "20260101T000000Z-1");
  EXPECT_EQ(job["estimated"], true);
  const std::string page = PlanPage(problem, *plan, facts);
  EXPECT_THAT(page, HasSubstr("1500 (estimated)"));
  EXPECT_THAT(page, HasSubstr("The power of 1 job is a model's answer"));
  EXPECT_THAT(page, HasSubstr("Made-up data."));
  EXPECT_THAT(page, HasSubstr("Cost: 1 EUR"));
}

TEST(PlanPageTest, DrawsEveryHourAndEveryWindow) {
  const PlanProblem problem = Problem();
  const auto plan = MakePlan(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string page = PlanPage(problem, *plan, Facts());
  // Six hours, the span of the job, and its two windows.
  size_t rects = 0;
  for (size_t at = 0; (at = page.find("<rect", at)) != std::string::npos;
       ++at) {
    ++rects;
  }
  EXPECT_EQ(rects, 6 + 1 + 2);
  EXPECT_THAT(page, HasSubstr(HoursText({1, 3}, kStart)));
  EXPECT_THAT(page, HasSubstr("Zone DE, 1 machine: 2 kWh, 200 gCO2e"));
  EXPECT_THAT(page, HasSubstr("nightly&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(PlanPageTest, ThePlanAsDataHasSumsHoursAndWindows) {
  const PlanProblem problem = Problem();
  const auto plan = MakePlan(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto json = nlohmann::json::parse(PlanJson(problem, *plan, Facts()));
  EXPECT_EQ(json["gco2e"], 200);
  EXPECT_EQ(json["gco2e_starting_now"], 400);
  EXPECT_EQ(json["exact"], true);
  EXPECT_EQ(json["hours"].size(), 6);
  EXPECT_EQ(json["hours"][2]["gco2e_per_kwh"], 400);
  const auto& job = json["jobs"][0];
  EXPECT_EQ(job["id"], "nightly<b>");
  ASSERT_EQ(job["windows"].size(), 2);
  EXPECT_EQ(job["windows"][1]["start"], "2026-01-01T03:00:00Z");
  EXPECT_EQ(job["windows"][1]["hours"], 1);
}

TEST(PlanPageTest, AJobWithoutAPlaceSaysSo) {
  PlanProblem problem = Problem();
  problem.jobs.push_back(problem.jobs[0]);
  problem.jobs[1].id = "other";
  problem.jobs[0].deadline = problem.jobs[1].deadline = 3;
  const auto plan = MakePlan(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->unplaced, 1);
  EXPECT_THAT(
      PlanPage(problem, *plan, Facts()),
      HasSubstr("1 job found no place: these machines cannot hold all"));
  Plan unproven = *plan;
  unproven.least_unplaced = 0;
  EXPECT_THAT(UnplacedText(unproven), HasSubstr("does not prove"));
}

TEST(PlanPageTest, HoursThatFollowEachOtherAreOneWindow) {
  EXPECT_THAT(HoursText({1, 2, 3, 7}, kStart), HasSubstr(" 3h, "));
  EXPECT_EQ(HoursText({}, kStart), "");
}

}  // namespace
}  // namespace optrail::carbon
