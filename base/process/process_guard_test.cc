#include "base/process/process_guard.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

constexpr char kParentFlag[] = "--run_guarded=";

// A shell that starts a child, one in a session of its own, and a daemon, each
// of which notes its process id, and stays.
std::string TreeCommand(const std::string& pids) {
  return absl::StrCat("note() { echo $1 >> ", pids,
                      "; }; sleep 600 & note $!; "
                      "setsid sh -c 'echo $$ >> ",
                      pids,
                      "; exec sleep 600' & "
                      "(setsid sh -c 'sleep 600 & echo $! >> ",
                      pids, "; echo $$ >> ", pids,
                      "; wait' >/dev/null 2>&1 & ) ; note $$; wait");
}

class ProcessGuardTest : public ::testing::Test {
 protected:
  ProcessGuardTest() {
    pids_ = JoinPath(
        ::testing::TempDir(),
        absl::StrCat(
            ::testing::UnitTest::GetInstance()->current_test_info()->name(),
            getpid()));
    options_.guard = "/proc/self/exe";
  }

  std::vector<pid_t> Noted() const {
    std::vector<pid_t> pids;
    const auto text = ReadFile(pids_);
    if (!text.ok()) return pids;
    for (const absl::string_view line :
         absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
      pid_t pid = 0;
      if (absl::SimpleAtoi(line, &pid)) pids.push_back(pid);
    }
    return pids;
  }
  bool WaitUntil(absl::Duration patience, const std::function<bool()>& holds) {
    const int64_t until_ns =
        Clock::Real()->NowNs() + absl::ToInt64Nanoseconds(patience);
    while (!holds()) {
      if (Clock::Real()->NowNs() > until_ns) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }
  static bool Runs(pid_t pid) {
    const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
    return stat.ok() && stat->find(") Z ") == std::string::npos;
  }
  bool AllGone() const {
    for (const pid_t pid : Noted()) {
      if (Runs(pid)) return false;
    }
    return true;
  }

  std::string pids_;
  CommandOptions options_;
};

TEST_F(ProcessGuardTest, EndsAsTheCommandEnds) {
  const auto run = [&](const std::string& script) {
    const auto result = RunCommand({"/bin/sh", "-c", script}, options_);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  EXPECT_TRUE(run("exit 0").exit.ok());
  EXPECT_EQ(run("exit 7").exit.code, 7);
  EXPECT_EQ(run("exit 250").exit.code, 249);
  EXPECT_EQ(run("kill -11 $$").exit.signal, 11);
  EXPECT_EQ(run("echo out; echo err >&2").stdout_text, "out\n");
  EXPECT_EQ(run("echo out; echo err >&2").stderr_text, "err\n");
}

TEST_F(ProcessGuardTest, WhatACommandLeavesBehindEndsWithIt) {
  const auto result =
      RunCommand({"/bin/sh", "-c",
                  absl::StrCat("setsid sh -c 'echo $$ >> ", pids_,
                               "; exec sleep 600' & while [ ! -s ", pids_,
                               " ]; do :; done")},
                 options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->exit.ok()) << result->exit.ToString();
  EXPECT_EQ(Noted().size(), 1);
  EXPECT_TRUE(AllGone());
}

TEST_F(ProcessGuardTest, ADeadlineEndsTheWholeTree) {
  options_.timeout = absl::Seconds(2);
  const auto result =
      RunCommand({"/bin/sh", "-c", TreeCommand(pids_)}, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.kind, ExitInfo::Kind::kTimedOut);
  EXPECT_EQ(Noted().size(), 5);
  EXPECT_TRUE(AllGone());
}

TEST_F(ProcessGuardTest, TheMemoryOfTheTreeIsLimitedTogether) {
  // Four processes of 40 MB each (80 for a moment), none of them above the
  // limit.
  options_.max_resident_bytes = int64_t{100} << 20;
  const std::string hog =
      "sh -c 'x=$(head -c 40000000 /dev/zero | tr \"\\0\" x); sleep 600' & ";
  const auto result = RunCommand(
      {"/bin/sh", "-c", absl::StrCat(hog, hog, hog, hog, "wait")}, options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.kind, ExitInfo::Kind::kOutOfMemory)
      << result->exit.ToString();
}

// Whichever signal ends the process that runs the command.
TEST_F(ProcessGuardTest, TheTreeEndsWithTheProcessThatStartedIt) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    SCOPED_TRACE(number);
    (void)RemoveFile(pids_);
    auto parent =
        Subprocess::Start({"/proc/self/exe", absl::StrCat(kParentFlag, pids_)});
    ASSERT_TRUE(parent.ok()) << parent.status();
    ASSERT_TRUE(
        WaitUntil(absl::Seconds(60), [&] { return Noted().size() == 5; }));
    kill((*parent)->pid(), number);
    EXPECT_EQ((*parent)->Wait(absl::Seconds(60)).signal, number);
    EXPECT_TRUE(WaitUntil(absl::Seconds(60), [&] { return AllGone(); }));
  }
}

}  // namespace
}  // namespace optrail

int main(int argc, char** argv) {
  if (optrail::IsProcessGuard(argc, argv)) {
    return optrail::RunProcessGuard(argc, argv);
  }
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.rfind(optrail::kParentFlag, 0) == 0) {
    optrail::CommandOptions options;
    options.guard = "/proc/self/exe";
    (void)optrail::RunCommand(
        {"/bin/sh", "-c",
         optrail::TreeCommand(first.substr(sizeof(optrail::kParentFlag) - 1))},
        options);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
