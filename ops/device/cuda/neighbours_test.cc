#include "ops/device/cuda/neighbours.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;

constexpr int kOther = 400'000'001;  // no pid
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

absl::Time At(int ms) { return kStart + absl::Milliseconds(ms); }

std::vector<ProcessActivity> Busy(int pid, int until_ms, int percent = 40) {
  return {{pid, absl::ToUnixMicros(At(until_ms)), percent}};
}

TEST(NeighboursTest, AnIdleContextIsNamedAndIgnored) {
  Neighbours neighbours(absl::Seconds(1));
  EXPECT_TRUE(neighbours.empty());
  for (int ms = 0; ms < 3000; ms += 20) {
    neighbours.Tell(At(ms), {kOther}, std::vector<ProcessActivity>());
    EXPECT_FALSE(neighbours.Disturb(At(ms)));
  }
  EXPECT_EQ(neighbours.Names(At(3000)).idle, "process 400000001");
  EXPECT_EQ(neighbours.Names(At(3000)).active, "");
}

TEST(NeighboursTest, TheOneThatComputesIsNamed) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {getpid(), kOther}, Busy(getpid(), -50));
  EXPECT_TRUE(neighbours.Disturb(At(0)));
  EXPECT_THAT(neighbours.Names(At(0)).active,
              HasSubstr(absl::StrCat("process ", getpid(), " (")));
  EXPECT_EQ(neighbours.Names(At(0)).idle, "process 400000001");
}

TEST(NeighboursTest, ActivityEndsOnceAWholePeriodHadNone) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {kOther}, Busy(kOther, -10));
  neighbours.Tell(At(500), {kOther}, std::vector<ProcessActivity>());
  EXPECT_TRUE(neighbours.Disturb(At(980)));
  EXPECT_FALSE(neighbours.Disturb(At(991)));
  // A period in which it did nothing is none.
  neighbours.Tell(At(1000), {kOther}, Busy(kOther, 1000, 0));
  EXPECT_FALSE(neighbours.Disturb(At(1000)));
}

TEST(NeighboursTest, AProcessThatEndedDisturbsUntilItsAccountIsClosed) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {kOther}, Busy(kOther, -10));
  neighbours.Tell(At(20), {}, Busy(kOther, 15));
  EXPECT_TRUE(neighbours.Disturb(At(1000)));
  neighbours.Tell(At(1040), {}, std::vector<ProcessActivity>());
  EXPECT_FALSE(neighbours.Disturb(At(1040)));
  EXPECT_TRUE(neighbours.empty());
}

TEST(NeighboursTest, OneThatArrivesCountsAsActiveUntilItsFirstAccount) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {}, std::vector<ProcessActivity>());
  neighbours.Tell(At(20), {kOther}, std::vector<ProcessActivity>());
  EXPECT_TRUE(neighbours.Disturb(At(20)));
  EXPECT_FALSE(neighbours.Disturb(At(1021)));
}

// Processes of this session, and those that take turns, are in the account and
// not in the list.
TEST(NeighboursTest, ActivityOfOthersThanNeighboursIsNone) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {kOther}, Busy(getpid(), -10));
  EXPECT_FALSE(neighbours.Disturb(At(0)));
}

TEST(NeighboursTest, WhereNothingIsAccountedForAllCountAsActive) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {kOther}, absl::nullopt);
  EXPECT_TRUE(neighbours.Disturb(At(5000)));
  neighbours.Tell(At(5020), {}, absl::nullopt);
  EXPECT_FALSE(neighbours.Disturb(At(5020)));
}

TEST(NeighboursTest, FindsTheFirstPeriodThatHadActivityAfterAMoment) {
  Neighbours neighbours(absl::Seconds(1));
  neighbours.Tell(At(0), {kOther}, Busy(kOther, -10));
  neighbours.Tell(At(400), {kOther}, Busy(kOther, 300));
  neighbours.Tell(At(700), {kOther}, Busy(kOther, 600));
  EXPECT_EQ(neighbours.FirstActive(At(0)), At(300));
  EXPECT_EQ(neighbours.FirstActive(At(300)), At(600));
  EXPECT_EQ(neighbours.FirstActive(At(600)), absl::InfiniteFuture());
}

}  // namespace
}  // namespace optrail::ops::cuda
