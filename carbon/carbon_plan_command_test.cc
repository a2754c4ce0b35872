// `optrail carbon plan` from its files to its table and exit code.

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "carbon/carbon_command.h"
#include "carbon/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::carbon {
namespace {

using testing::HasSubstr;

class CarbonPlanCommandTest : public testing::Test {
 protected:
  CarbonPlanCommandTest() {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    command_.common.history = JoinPath(folder_, "history");
    command_.common.format = OutputFormat::kCsv;
    command_.jobs = JoinPath(folder_, "jobs.csv");
    command_.grid.intensity = JoinPath(folder_, "grid.csv");
    command_.grid.zone = "Z";
  }

  void Write(const std::string& jobs, const std::string& intensity) {
    EXPECT_TRUE(
        WriteFileAtomically(
            command_.jobs,
            absl::StrCat("id,watts,hours,release,deadline,preemptible\n", jobs))
            .ok());
    EXPECT_TRUE(WriteFileAtomically(command_.grid.intensity, intensity).ok());
  }

  const std::string folder_ =
      JoinPath(testing::TempDir(),
               testing::UnitTest::GetInstance()->current_test_info()->name());
  CarbonPlanCommand command_;
};

TEST_F(CarbonPlanCommandTest, AJobRunsInAClockHourOfTheZone) {
  Write("a,1000,1,2026-03-29T00:00:00+05:30,2026-03-29T02:00:00+05:30,yes\n",
        "zone,start,end,gco2e_per_kwh,kind\n"
        "Z,2026-03-29T00:00:00+05:30,2026-03-29T01:00:00+05:30,300,average\n"
        "Z,2026-03-29T01:00:00+05:30,2026-03-29T02:00:00+05:30,100,average\n");
  std::ostringstream out;
  const auto code = RunCarbonPlan(command_, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
  EXPECT_THAT(out.str(), HasSubstr("a,1,100,,2026-03-28T19:30:00Z 1h,\n"));
}

TEST_F(CarbonPlanCommandTest, SlackGoesBeyondTheDeadlinesOfTheFile) {
  const int64_t start = *ParseTime("2026-01-01T00:00:00Z");
  const std::string job =
      ",1000,1,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,no\n";
  Write(absl::StrCat("a", job, "b", job), ExampleIntensity("Z", start, 3, 1));
  command_.slacks = {absl::ZeroDuration()};
  std::ostringstream out;
  auto code = RunCarbonPlan(command_, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kCheckFailed);

  command_.slacks = {absl::ZeroDuration(), absl::Hours(1)};
  out.str("");
  code = RunCarbonPlan(command_, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
  // The last column counts the jobs without a place.
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n0,[^\n]*,1\n"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n1,[^\n]*,0\n"));

  // Others keep their rows beside one beyond the end of the file.
  command_.slacks = {absl::Hours(1), absl::Hours(9)};
  out.str("");
  code = RunCarbonPlan(command_, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
  EXPECT_THAT(out.str(), testing::ContainsRegex("\n1,[^\n]*,0\n"));
  EXPECT_THAT(out.str(), HasSubstr("\n9,,,,,\n"));

  command_.slacks = {absl::Hours(9)};
  EXPECT_THAT(std::string(RunCarbonPlan(command_, out).status().message()),
              HasSubstr("says nothing of zone Z at 2026-01-01T03:00:00Z"));
}

TEST_F(CarbonPlanCommandTest, RefusesAFlagWithoutEffectAndAnUnknownFile) {
  Write("a,1000,1,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,no\n",
        ExampleIntensity("Z", *ParseTime("2026-01-01T00:00:00Z"), 3, 1));
  std::ostringstream out;
  command_.model.device_watts = 5;
  EXPECT_THAT(std::string(RunCarbonPlan(command_, out).status().message()),
              HasSubstr("--watts=5 has no effect"));
  command_.model.device_watts = 0;
  command_.out = JoinPath(folder_, "plan.txt");
  EXPECT_THAT(std::string(RunCarbonPlan(command_, out).status().message()),
              HasSubstr("expected a name that ends in .html"));
  for (const char* name : {"plan.html", "plan.htm"}) {
    command_.out = JoinPath(folder_, name);
    EXPECT_TRUE(RunCarbonPlan(command_, out).ok());
    EXPECT_TRUE(FileExists(command_.out));
  }
}

}  // namespace
}  // namespace optrail::carbon
