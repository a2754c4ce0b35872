#include "base/clock.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(ClockTest, RealTimeDoesNotGoBack) {
  const int64_t first = Clock::Real()->NowNs();
  EXPECT_GE(Clock::Real()->NowNs(), first);
  // 2023-01-01: before this test was written.
  EXPECT_GT(Clock::Real()->WallNs(), 1672531200 * int64_t{1000000000});
}

TEST(ClockTest, FakeTimeMovesOnlyWhenAdvanced) {
  FakeClock clock(1000);
  EXPECT_EQ(clock.NowNs(), 0);
  EXPECT_EQ(clock.WallNs(), 1000);
  clock.AdvanceNs(5);
  clock.Advance(absl::Microseconds(2));
  EXPECT_EQ(clock.NowNs(), 2005);
  EXPECT_EQ(clock.WallNs(), 3005);
}

}  // namespace
}  // namespace optrail
