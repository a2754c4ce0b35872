#include "tracker/checkout/interruptible.h"

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

TEST(InterruptibleTest, RunsACommandToItsEnd) {
  Interruptible interruptible;
  const auto end =
      interruptible.Run({"sh", "-c", "echo dropped; echo kept >&2; exit 3"}, "",
                        absl::Seconds(60));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit.code, 3);
  EXPECT_EQ(end->stderr_tail, "kept\n");
}

TEST(InterruptibleTest, KillsWhatOutlivesItsDeadline) {
  Interruptible interruptible;
  const auto end =
      interruptible.Run({"sleep", "600"}, "", absl::Milliseconds(50));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit.kind, ExitInfo::Kind::kTimedOut);
}

TEST(InterruptibleTest, WhatWasIgnoredStaysIgnored) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    Interruptible interruptible;
    EXPECT_EQ(raise(SIGHUP), 0);
    EXPECT_TRUE(interruptible.Check().ok());
  }
  signal(SIGHUP, before);
}

TEST(InterruptibleTest, NamesAProgramThatIsNotThere) {
  Interruptible interruptible;
  EXPECT_FALSE(
      interruptible.Run({"/no/such/program"}, "", absl::Seconds(60)).ok());
}

// The child signals its parent and then outlasts any test: it must be ended,
// what follows must run, and then the signal must take its course.
TEST(InterruptibleDeathTest, ASignalEndsTheChildThenCleansUpThenIsRaised) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Interruptible interruptible;
        const auto end =
            interruptible.Run({"sh", "-c", "kill -INT $PPID; sleep 600"}, "",
                              absl::InfiniteDuration());
        const auto next =
            interruptible.Run({"true"}, "", absl::InfiniteDuration());
        if (absl::IsCancelled(end.status()) &&
            absl::IsCancelled(next.status())) {
          fprintf(stderr, "cleaned up\n");
        }
      },
      ::testing::KilledBySignal(SIGINT), "cleaned up");
}

TEST(InterruptibleDeathTest, TheSecondSignalKillsAChildThatIgnoresTheFirst) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Interruptible interruptible;
        const auto end = interruptible.Run(
            {"sh", "-c", "trap '' TERM; while true; do kill -INT $PPID; done"},
            "", absl::InfiniteDuration());
        fprintf(stderr, "status %s", end.status().ToString().c_str());
      },
      ::testing::KilledBySignal(SIGINT), "CANCELLED: interrupted");
}

}  // namespace
}  // namespace optrail::tracker
