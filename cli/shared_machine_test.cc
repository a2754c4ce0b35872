#include "cli/shared_machine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SharedMachineTest, NamesTheOtherMetricWhereProgramsWait) {
  EXPECT_THAT(MetricAdvice(.35, "time"),
              AllOf(HasSubstr("wait for a core 35% of their time"),
                    HasSubstr("--metric=cpu_time")));
  EXPECT_EQ(MetricAdvice(.05, "time"), "");
  EXPECT_EQ(MetricAdvice(.35, "cpu_time"), "");
  EXPECT_EQ(MetricAdvice(.35, ".*_time"), "");
}

TEST(SharedMachineTest, AServerIsSlowerWhereProgramsWait) {
  EXPECT_THAT(ServingAdvice(.35),
              AllOf(HasSubstr("wait for a core 35% of their time"),
                    HasSubstr("loads that are held lower")));
  EXPECT_EQ(ServingAdvice(.05), "");
}

TEST(SharedMachineTest, AsksForMoreProcessesWhereMoreWait) {
  EXPECT_EQ(ProcessesFor(0), 10);
  EXPECT_EQ(ProcessesFor(.5), 20);
  EXPECT_EQ(ProcessesFor(.99), 100);
  EXPECT_EQ(ProcessesFor(1), 100);
}

}  // namespace
}  // namespace optrail::cli
