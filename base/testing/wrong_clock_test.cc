#include "base/testing/wrong_clock.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

// The wall clock, as several libraries read it.
std::vector<absl::Time> WallClocks() {
  timeval now = {};
  gettimeofday(&now, nullptr);
  return {absl::Now(), absl::FromUnixNanos(Clock::Real()->WallNs()),
          absl::FromChrono(std::chrono::system_clock::now()),
          absl::TimeFromTimeval(now), absl::FromTimeT(time(nullptr))};
}

TEST(WrongClockTest, TheWallClockIsWrongAndTheSteadyClockIsNot) {
  const int64_t steady_ns = Clock::Real()->NowNs();
  const absl::Time before = absl::Now();
  for (const absl::Duration error : {absl::Hours(5), -absl::Hours(5)}) {
    SetWallClockError(error);
    for (const absl::Time now : WallClocks()) {
      EXPECT_LT(absl::AbsDuration(now - before - error), absl::Hours(1));
    }
    // In a child, too.
    const pid_t child = fork();
    if (child == 0) {
      _exit(absl::AbsDuration(absl::Now() - before - error) < absl::Hours(1)
                ? 0
                : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_LT(Clock::Real()->NowNs() - steady_ns,
              absl::ToInt64Nanoseconds(absl::Hours(1)));
    EXPECT_GE(Clock::Real()->NowNs(), steady_ns);
  }
  SetWallClockError(absl::ZeroDuration());
  EXPECT_GE(absl::Now(), before);
}

}  // namespace
}  // namespace optrail
