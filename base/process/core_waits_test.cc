#include "base/process/core_waits.h"

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

class CoreWaitsTest : public ::testing::Test {
 protected:
  CoreWaitsTest() {
    std::string pattern = ::testing::TempDir() + "/proc_XXXXXX";
    proc_ = mkdtemp(pattern.data());
  }

  void Set(int process, int thread, absl::Duration waited,
           const std::string& children = "") {
    const std::string task =
        absl::StrCat(proc_, "/", process, "/task/", thread);
    ASSERT_TRUE(CreateDirectories(task).ok());
    ASSERT_TRUE(WriteFileAtomically(
                    task + "/schedstat",
                    absl::StrCat("123456789 ", absl::ToInt64Nanoseconds(waited),
                                 " 42\n"))
                    .ok());
    ASSERT_TRUE(WriteFileAtomically(task + "/children", children).ok());
  }

  std::string proc_;
};

TEST_F(CoreWaitsTest, CountsFromNowOnAndByTheThreadThatWaitedLongest) {
  Set(7, 7, absl::Seconds(100));
  Set(7, 8, absl::Seconds(5));
  const CoreWaits waits(7, proc_);
  EXPECT_EQ(waits.Longest(), absl::ZeroDuration());
  Set(7, 7, absl::Seconds(101));
  Set(7, 8, absl::Seconds(9));
  EXPECT_EQ(waits.Longest(), absl::Seconds(4));
}

TEST_F(CoreWaitsTest, ThreadsAndProcessesThatBeganSinceWaitedSince) {
  Set(7, 7, absl::Seconds(100));
  const CoreWaits waits(7, proc_);
  Set(7, 7, absl::Seconds(101), "20 30 ");
  Set(20, 20, absl::Seconds(2));
  Set(20, 21, absl::Seconds(3), "40");
  Set(40, 40, absl::Seconds(6), "7");  // nor does a circle hang
  EXPECT_EQ(waits.Longest(), absl::Seconds(6));
}

TEST_F(CoreWaitsTest, ANumberThatWasGivenAnewIsAnotherThread) {
  Set(7, 7, absl::Seconds(1));
  Set(7, 8, absl::Seconds(100));
  const CoreWaits waits(7, proc_);
  Set(7, 8, absl::Seconds(3));
  EXPECT_EQ(waits.Longest(), absl::Seconds(3));
}

TEST_F(CoreWaitsTest, WhereTheKernelDoesNotTellNobodyWaited) {
  const CoreWaits gone(7, proc_);
  EXPECT_EQ(gone.Longest(), absl::ZeroDuration());
  Set(7, 7, absl::Seconds(1));
  ASSERT_TRUE(
      WriteFileAtomically(proc_ + "/7/task/7/schedstat", "what?\n").ok());
  const CoreWaits garbled(7, proc_);
  EXPECT_EQ(garbled.Longest(), absl::ZeroDuration());
}

TEST_F(CoreWaitsTest, ReadsTheMachinesOwn) {
  const CoreWaits waits(getpid());
  EXPECT_GE(waits.Longest(), absl::ZeroDuration());
}

}  // namespace
}  // namespace optrail
