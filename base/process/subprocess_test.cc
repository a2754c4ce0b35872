#include "base/process/subprocess.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;
using Kind = ExitInfo::Kind;

// Long enough never to pass on a busy machine.
constexpr absl::Duration kAges = absl::Minutes(2);

std::string ChildBinary() {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                      std::getenv("TEST_WORKSPACE"),
                      "/base/process/subprocess_test_child");
}

CommandResult Shell(const std::string& script, CommandOptions options = {}) {
  absl::StatusOr<CommandResult> result =
      RunCommand({"/bin/sh", "-c", script}, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : CommandResult();
}

std::unique_ptr<Subprocess> StartChild(const std::string& mode,
                                       const SubprocessOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Subprocess>> child =
      Subprocess::Start({ChildBinary(), mode}, options);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

int OpenDescriptors() {
  DIR* dir = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

bool HasChildren() {
  return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
}

TEST(RunCommandTest, CapturesOutputAndExitCode) {
  const CommandResult result = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.stdout_text, "out\n");
  EXPECT_EQ(result.stderr_text, "err\n");
  EXPECT_EQ(result.exit.kind, Kind::kExited);
  EXPECT_EQ(result.exit.code, 3);
  EXPECT_FALSE(result.exit.ok());
  EXPECT_EQ(result.exit.ToString(), "exited with code 3");
  EXPECT_GT(result.exit.max_resident_bytes, 0);
}

TEST(RunCommandTest, MissingProgramIsNotFoundAndNamed) {
  const absl::Status status = RunCommand({"no-such-program"}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("no-such-program"));
}

TEST(RunCommandTest, FeedsInputLargerThanThePipe) {
  CommandOptions options;
  options.stdin_text = std::string(5 << 20, 'x');
  const CommandResult result = Shell("cat", options);
  EXPECT_EQ(result.stdout_text, options.stdin_text);
  EXPECT_FALSE(result.stdout_truncated);
}

TEST(RunCommandTest, ChildThatReadsNothingIsNoError) {
  CommandOptions options;
  options.stdin_text = std::string(5 << 20, 'x');
  EXPECT_TRUE(Shell("exec 0</dev/null; echo done", options).exit.ok());
}

TEST(RunCommandTest, LimitsOutput) {
  CommandOptions options;
  options.max_stdout_bytes = 1000;
  options.max_stderr_bytes = 4;
  const CommandResult result =
      Shell("head -c 300000 /dev/zero; printf 123456789 >&2", options);
  EXPECT_TRUE(result.exit.ok());
  EXPECT_EQ(result.stdout_text.size(), 1000);
  EXPECT_TRUE(result.stdout_truncated);
  EXPECT_EQ(result.stderr_text, "6789");
}

TEST(RunCommandTest, DeadlineKillsTheWholeGroup) {
  CommandOptions options;
  options.timeout = absl::Milliseconds(100);
  const CommandResult result = Shell("sleep 1000 & echo $!; wait", options);
  EXPECT_EQ(result.exit.kind, Kind::kTimedOut);
  pid_t grandchild;
  ASSERT_TRUE(absl::SimpleAtoi(result.stdout_text, &grandchild));
  // It is killed, and reaped by whoever adopted it.
  const absl::Time patience = absl::Now() + kAges;
  std::string state;
  while (absl::Now() < patience) {
    state = Shell(absl::StrCat("cut -d ' ' -f 3 /proc/", grandchild,
                               "/stat 2>/dev/null || echo gone"))
                .stdout_text;
    if (state == "Z\n" || state == "gone\n") break;
  }
  EXPECT_THAT(state, testing::AnyOf("Z\n", "gone\n"));
}

TEST(RunCommandTest, DoesNotWaitForDaemonsThatKeepTheOutputOpen) {
  const CommandResult result = Shell("sleep 1000 & echo done");
  EXPECT_TRUE(result.exit.ok());
  EXPECT_EQ(result.stdout_text, "done\n");
}

TEST(RunCommandTest, ReportsTheSignal) {
  const ExitInfo exit = Shell("kill -SEGV $$").exit;
  EXPECT_EQ(exit.kind, Kind::kSignaled);
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_THAT(exit.ToString(), HasSubstr("Segmentation fault"));
}

TEST(RunCommandTest, ForeignSigkillIsNotOurs) {
  EXPECT_EQ(Shell("kill -KILL $$").exit.kind, Kind::kSignaled);
}

TEST(RunCommandTest, SetsEnvironmentAndFolder) {
  CommandOptions options;
  options.environment = {{"FRUIT", "apple pie"}};
  options.working_directory = "/proc";
  EXPECT_EQ(Shell("echo $FRUIT; pwd", options).stdout_text,
            "apple pie\n/proc\n");
  options.clear_environment = true;
  EXPECT_EQ(Shell("echo $HOME$FRUIT", options).stdout_text, "apple pie\n");
}

TEST(RunCommandTest, MissingFolderIsAnErrorThatNamesIt) {
  CommandOptions options;
  options.working_directory = "/no/such/folder";
  const absl::Status status = RunCommand({"/bin/true"}, options).status();
  EXPECT_THAT(status.message(), HasSubstr("/no/such/folder"));
}

TEST(RunCommandTest, WatchdogStopsAllocation) {
  CommandOptions options;
  options.max_resident_bytes = int64_t{64} << 20;
  options.watchdog_interval = absl::Milliseconds(1);
  options.timeout = kAges;
  const absl::StatusOr<CommandResult> result =
      RunCommand({ChildBinary(), "allocate"}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.kind, Kind::kOutOfMemory);
  EXPECT_EQ(result->exit.ToString(),
            "exceeded its memory limit of 64.0 MiB and was killed");
}

// The kernel's counts before and after somebody killed a child.
ExitInfo Killed(const std::string& before, const std::string& after) {
  SubprocessOptions options;
  options.kernel_counts = JoinPath(::testing::TempDir(), "vmstat");
  EXPECT_TRUE(WriteFileAtomically(options.kernel_counts, before).ok());
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  EXPECT_TRUE(WriteFileAtomically(options.kernel_counts, after).ok());
  kill(child->pid(), SIGKILL);
  return child->Wait(kAges);
}

TEST(SubprocessTest, WhatTheKernelKillsForWantOfMemorySaysSo) {
  const ExitInfo exit = Killed("nr_dirty 7\noom_kill 3\nnr_free 1\n",
                               "nr_dirty 9\noom_kill 4\nnr_free 0\n");
  EXPECT_EQ(exit.kind, Kind::kMachineOutOfMemory);
  EXPECT_THAT(exit.ToString(), HasSubstr("no memory left"));
  EXPECT_THAT(exit.ToString(), HasSubstr("iB"));
}

TEST(SubprocessTest, WhatSomebodyElseKillsSaysSo) {
  for (const char* counts : {"oom_kill 3\n", "nr_free 1\n", "oom_kill x\n"}) {
    const ExitInfo exit = Killed(counts, counts);
    EXPECT_EQ(exit.kind, Kind::kSignaled) << counts;
    EXPECT_EQ(exit.signal, SIGKILL) << counts;
  }
}

TEST(RunCommandTest, DataLimitMakesAllocationsFail) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's shadow memory counts as data";
#endif
  CommandOptions options;
  options.max_data_bytes = int64_t{64} << 20;
  options.timeout = kAges;
  const absl::StatusOr<CommandResult> result =
      RunCommand({ChildBinary(), "allocate"}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.kind, Kind::kSignaled);  // abort after std::bad_alloc
  EXPECT_THAT(result->stderr_text, HasSubstr("bad_alloc"));
}

TEST(RunCommandTest, LeavesNoZombieAndNoDescriptor) {
  const int before = OpenDescriptors();
  for (int i = 0; i < 10; ++i) {
    Shell("true");
    EXPECT_FALSE(RunCommand({"no-such-program"}).ok());
    StartChild("frames");
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_FALSE(HasChildren());
}

TEST(RunCommandTest, ChildInheritsOnlyTheStandardDescriptors) {
  const int leaky = dup(STDERR_FILENO);  // without CLOEXEC
  EXPECT_EQ(Shell("ls /proc/self/fd | wc -l").stdout_text, "4\n");  // and ls's
  close(leaky);
}

TEST(SubprocessTest, ExchangesMessages) {
  const std::unique_ptr<Subprocess> child = StartChild("frames");
  const std::string large(3 << 20, 'y');
  for (const std::string& text : {std::string("a"), std::string(), large}) {
    ASSERT_TRUE(child->WriteFrame(text, kAges).ok());
    EXPECT_EQ(child->ReadFrame(kAges).value(), "got " + text);
  }
  child->CloseInput();
  EXPECT_TRUE(child->Wait(kAges).ok());
  EXPECT_FALSE(child->running());
}

TEST(SubprocessTest, TellsWithoutWaitingWhetherThereIsSomethingToRead) {
  const std::unique_ptr<Subprocess> child = StartChild("frames");
  const auto comes = [&] {
    for (int i = 0; i < 12000 && !child->HasOutput(); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return child->HasOutput();
  };
  EXPECT_FALSE(child->HasOutput());
  ASSERT_TRUE(child->WriteFrame("a", kAges).ok());
  EXPECT_TRUE(comes());
  EXPECT_EQ(child->ReadFrame(kAges).value(), "got a");
  EXPECT_FALSE(child->HasOutput());
  child->CloseInput();
  EXPECT_TRUE(comes()) << "its end";
}

TEST(SubprocessTest, StrayOutputDoesNotGarbleMessages) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kCapture;
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("print", kAges).ok());
  EXPECT_EQ(child->ReadFrame(kAges).value(), "got print");
  child->CloseInput();
  EXPECT_TRUE(child->Wait(kAges).ok());
  EXPECT_EQ(child->TakeStderr(), "stray text\n");
}

TEST(SubprocessTest, HangingChildMissesTheDeadlineAndIsKilled) {
  const std::unique_ptr<Subprocess> child = StartChild("frames");
  ASSERT_TRUE(child->WriteFrame("hang", kAges).ok());
  const absl::Status status = child->ReadFrame(absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  // It takes no more than its pipe holds.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      child->WriteFrame(std::string(1 << 20, 'x'), absl::Milliseconds(20))));
  EXPECT_EQ(child->Wait(absl::Milliseconds(20)).kind, Kind::kTimedOut);
}

// A machine whose clock is set at every look. Its steady time goes on as told.
class JumpingClock : public Clock {
 public:
  JumpingClock(absl::Duration steady_step, absl::Duration wall_step)
      : steady_step_ns_(absl::ToInt64Nanoseconds(steady_step)),
        wall_step_ns_(absl::ToInt64Nanoseconds(wall_step)) {}
  int64_t NowNs() const override {
    Look();
    return steady_ns_;
  }
  int64_t WallNs() const override {
    Look();
    return wall_ns_;
  }

 private:
  void Look() const {
    steady_ns_ += steady_step_ns_;
    wall_ns_ += wall_step_ns_;
  }
  const int64_t steady_step_ns_;
  const int64_t wall_step_ns_;
  mutable int64_t steady_ns_ = 0;
  mutable int64_t wall_ns_ = FakeClock::kDefaultWallNs;
};

TEST(SubprocessTest, SettingTheClockForwardKillsNoChild) {
  const JumpingClock clock(absl::ZeroDuration(), absl::Hours(24));
  SubprocessOptions options;
  options.clock = &clock;
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("text", absl::Seconds(1)).ok());
  EXPECT_EQ(child->ReadFrame(absl::Seconds(1)).value(), "got text");
  child->CloseInput();
  EXPECT_TRUE(child->Wait(absl::Seconds(1)).ok());

  CommandOptions command;
  command.clock = &clock;
  command.timeout = absl::Seconds(1);
  EXPECT_EQ(Shell("echo out", command).stdout_text, "out\n");
}

TEST(SubprocessTest, SettingTheClockBackKeepsNoHangingChildAlive) {
  const JumpingClock clock(absl::Seconds(1), -absl::Hours(24));
  SubprocessOptions options;
  options.clock = &clock;
  // The watchdog makes it look at the clock every few milliseconds.
  options.max_resident_bytes = int64_t{1} << 40;
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("hang", kAges).ok());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(child->ReadFrame(absl::Seconds(10)).status()));
  EXPECT_EQ(child->Wait(absl::Seconds(10)).kind, Kind::kTimedOut);
}

// One core, and neighbours that keep it busy.
class CoreWithNeighbours : public ::testing::Test {
 protected:
  static constexpr int kNeighbours = 4;
  // Children that are started by now on share the core with all neighbours.
  void SetUp() override {
    usable_ = UsableCpus();
    ASSERT_TRUE(UseCpus({usable_.front()}).ok());
    for (int i = 0; i < kNeighbours; ++i) {
      neighbours_.push_back(StartChild("frames"));
      ASSERT_TRUE(neighbours_.back()->WriteFrame("spin", kAges).ok());
    }
  }
  void TearDown() override { ASSERT_TRUE(UseCpus(usable_).ok()); }

  std::vector<int> usable_;
  std::vector<std::unique_ptr<Subprocess>> neighbours_;
};

// Half a second of work takes five times as long here.
TEST_F(CoreWithNeighbours, ADeadlineDoesNotCountWhatTheChildWaitedForTheCore) {
  SubprocessOptions options;
  options.deadline_stretch = 100;
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("compute", kAges).ok());
  const absl::StatusOr<std::string> reply = child->ReadFrame(absl::Seconds(1));
  EXPECT_TRUE(reply.ok()) << reply.status();
}

TEST_F(CoreWithNeighbours, OneThatHangsMissesItAllTheSame) {
  SubprocessOptions options;
  options.deadline_stretch = 3;
  for (const char* how : {"hang", "spin"}) {
    const std::unique_ptr<Subprocess> child = StartChild("frames", options);
    ASSERT_TRUE(child->WriteFrame(how, kAges).ok());
    EXPECT_TRUE(absl::IsDeadlineExceeded(
        child->ReadFrame(absl::Milliseconds(300)).status()))
        << how;
  }
}

TEST(SubprocessTest, CrashIsUnavailableAndTheSignalIsKnown) {
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kDiscard;
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("crash", kAges).ok());
  EXPECT_TRUE(absl::IsUnavailable(child->ReadFrame(kAges).status()));
  const ExitInfo exit = child->Wait(kAges);
  EXPECT_EQ(exit.kind, Kind::kSignaled);
  EXPECT_EQ(exit.signal, SIGABRT);
}

TEST(SubprocessTest, WritingToAnEndedChildDoesNotRaiseSigpipe) {
  const std::unique_ptr<Subprocess> child = StartChild("frames");
  ASSERT_TRUE(child->WriteFrame("exit", kAges).ok());
  EXPECT_TRUE(absl::IsUnavailable(child->ReadFrame(kAges).status()));
  EXPECT_TRUE(absl::IsUnavailable(child->WriteFrame("more", kAges)));
  EXPECT_EQ(child->Wait(kAges).code, 5);
}

TEST(SubprocessTest, MemoryCapHoldsBetweenMessages) {
  SubprocessOptions options;
  options.max_resident_bytes = int64_t{64} << 20;
  options.watchdog_interval = absl::Milliseconds(1);
  const std::unique_ptr<Subprocess> child = StartChild("frames", options);
  ASSERT_TRUE(child->WriteFrame("allocate", kAges).ok());
  const absl::Status status = child->ReadFrame(kAges).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(child->KillAndWait().kind, Kind::kOutOfMemory);
}

TEST(SubprocessTest, TornAndHugeMessagesAreDataLoss) {
  for (const char* mode : {"torn_frame", "huge_frame"}) {
    const std::unique_ptr<Subprocess> child = StartChild(mode);
    const absl::Status status = child->ReadFrame(kAges).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << mode << " " << status;
  }
}

TEST(SubprocessTest, WorkerDiesWithItsParent) {
  const absl::StatusOr<CommandResult> result =
      RunCommand({ChildBinary(), "orphan"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.kind, Kind::kSignaled);
  pid_t worker;
  ASSERT_TRUE(absl::SimpleAtoi(result->stdout_text, &worker))
      << result->stdout_text << result->stderr_text;
  const absl::Time patience = absl::Now() + kAges;
  std::string state;
  while (absl::Now() < patience) {
    state = Shell(absl::StrCat("cut -d ' ' -f 3 /proc/", worker,
                               "/stat 2>/dev/null || echo gone"))
                .stdout_text;
    if (state == "Z\n" || state == "gone\n") break;
  }
  EXPECT_THAT(state, testing::AnyOf("Z\n", "gone\n"));
}

}  // namespace
}  // namespace optrail
