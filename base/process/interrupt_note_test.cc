#include "base/process/interrupt_note.h"

#include <csignal>

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(InterruptNoteDeathTest, SaysItAndEndsByTheSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          const InterruptNote note("goes on");
          raise(signal);
        },
        testing::KilledBySignal(signal), "^\ngoes on\n$");
  }
}

TEST(InterruptNoteDeathTest, SaysNothingOnceItIsGone) {
  EXPECT_EXIT(
      {
        { const InterruptNote note("goes on"); }
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^$");
}

TEST(InterruptNoteTest, LeavesAnIgnoredSignalIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const InterruptNote note("goes on");
    raise(SIGHUP);
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

}  // namespace
}  // namespace optrail
