#include "suites/worker/run_context.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/text/textproto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

// A workspace of its own per test.
class RunContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    workspace_ = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(CreateDirectories(workspace_).ok());
    working_ = JoinPath(workspace_, "ops/add");
    setenv("BUILD_WORKSPACE_DIRECTORY", workspace_.c_str(), 1);
    setenv("BUILD_WORKING_DIRECTORY", working_.c_str(), 1);
    // The test may run inside the repository of its own sources.
    setenv("GIT_CEILING_DIRECTORIES", ::testing::TempDir().c_str(), 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
  }

  RunContext Find(const std::string& history = "",
                  const std::string& store = "") {
    const auto context = FindRunContext(proto::CPU, history, store);
    EXPECT_TRUE(context.ok()) << context.status();
    return context.ok() ? *context : RunContext();
  }

  static std::string CeilingsPath(const RunContext& context) {
    return JoinPath(
        context.state,
        absl::StrCat("ceilings-", context.hardware.id(), ".textproto"));
  }

  static void Keep(const RunContext& context, const std::string& text) {
    ASSERT_TRUE(CreateDirectories(context.state).ok());
    ASSERT_TRUE(WriteFileAtomically(CeilingsPath(context), text).ok());
  }

  static int64_t DaysAgo(int days) {
    return Clock::Real()->WallNs() -
           absl::ToInt64Nanoseconds(absl::Hours(24 * days));
  }

  std::string workspace_;
  std::string working_;  // where the user stands
};

TEST_F(RunContextTest, FoldersAreInTheWorkspace) {
  const RunContext context = Find();
  EXPECT_EQ(context.workspace, workspace_);
  EXPECT_EQ(context.history, workspace_ + "/.optrail/history");
  EXPECT_EQ(context.store, workspace_ + "/.optrail/store");
  EXPECT_EQ(context.state, workspace_ + "/.optrail/state");
  EXPECT_FALSE(FileExists(workspace_ + "/.optrail"))
      << "looking writes nothing";
}

TEST_F(RunContextTest, GivenFoldersWinAndRelativeOnesStartWhereTheUserStands) {
  const RunContext context = Find("results", "/elsewhere/store");
  EXPECT_EQ(context.history, working_ + "/results");
  EXPECT_EQ(context.store, "/elsewhere/store");
}

TEST_F(RunContextTest, KnowsTheHardwareAndTheToolchain) {
  const RunContext context = Find();
  EXPECT_FALSE(context.hardware.id().empty());
  EXPECT_GT(context.hardware.cores(), 0);
  EXPECT_EQ(context.hardware.device_kind(), proto::CPU);
  EXPECT_FALSE(context.toolchain.compiler().empty());
}

TEST_F(RunContextTest, WithoutARepositoryThereIsANoteInsteadOfACommit) {
  const RunContext context = Find();
  EXPECT_EQ(context.commit.id(), "");
  EXPECT_THAT(context.commit_note, HasSubstr("without a commit"));
}

TEST_F(RunContextTest, TheCommitIsTheOneThatIsCheckedOut) {
  CommandOptions in_workspace;
  in_workspace.working_directory = workspace_;
  const auto made = RunCommand(
      {"/bin/sh", "-ec",
       "git init -q -b main . && git -c user.name=A -c user.email=a@b "
       "commit -q --allow-empty -m first && git rev-parse HEAD"},
      in_workspace);
  ASSERT_TRUE(made.ok()) << made.status();
  if (!made->exit.ok()) GTEST_SKIP() << "no git: " << made->stderr_text;
  const RunContext context = Find();
  EXPECT_EQ(context.commit.id() + "\n", made->stdout_text);
  EXPECT_EQ(context.commit.branch(), "main");
  EXPECT_EQ(context.commit.first_parent_position(), 1);
  EXPECT_EQ(context.commit_note, "");
}

TEST_F(RunContextTest, CeilingsAreTheHighestReadingsOfTheLastMonth) {
  const RunContext context = Find();
  const int64_t last_week = DaysAgo(7);
  Keep(
      context,
      absl::StrCat("flop_per_s_one_thread: 1e18 ", "l1_read_bytes_per_s: 1 ",
                   "memory_buffer_bytes: 1 ", "measured_unix_ns: ", last_week));
  const proto::Ceilings ceilings = CeilingsOf(context);
  EXPECT_EQ(ceilings.flop_per_s_one_thread(), 1e18)
      << "the older one is higher";
  EXPECT_GT(ceilings.l1_read_bytes_per_s(), 1) << "the new one is";
  EXPECT_GT(ceilings.memory_read_bytes_per_s_one_thread(), 0) << "was missing";
  EXPECT_EQ(ceilings.measured_unix_ns(), last_week);

  const std::string path = CeilingsPath(context);
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto kept = ParseTextProto<proto::Ceilings>(*text, path);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->message.SerializeAsString(), ceilings.SerializeAsString());
}

TEST_F(RunContextTest, MemoryReadFromASmallerBufferIsReadAgain) {
  const RunContext context = Find();
  Keep(context,
       absl::StrCat("flop_per_s_one_thread: 1e18 l1_read_bytes_per_s: 1 "
                    "memory_read_bytes_per_s_one_thread: 1e18 "
                    "memory_copy_bytes_per_s_all_threads: 1e18 "
                    "memory_buffer_bytes: 4096 measured_unix_ns: ",
                    DaysAgo(7)));
  const proto::Ceilings ceilings = CeilingsOf(context);
  EXPECT_EQ(ceilings.flop_per_s_one_thread(), 1e18);
  EXPECT_LT(ceilings.memory_read_bytes_per_s_one_thread(), 1e18);
  EXPECT_LT(ceilings.memory_copy_bytes_per_s_all_threads(), 1e18);
  EXPECT_GT(ceilings.memory_buffer_bytes(), 4096);
}

TEST_F(RunContextTest, OlderCeilingsAreForgotten) {
  const RunContext context = Find();
  Keep(context, absl::StrCat("flop_per_s_one_thread: 1e18 measured_unix_ns: ",
                             DaysAgo(31)));
  const proto::Ceilings ceilings = CeilingsOf(context);
  EXPECT_GT(ceilings.flop_per_s_one_thread(), 0);
  EXPECT_LT(ceilings.flop_per_s_one_thread(), 1e18);
  EXPECT_GT(ceilings.measured_unix_ns(), DaysAgo(1));
}

TEST_F(RunContextTest, RecentCeilingsAreNotMeasuredAgain) {
  const RunContext context = Find();
  const auto keep = [&](int64_t last_unix_ns) {
    Keep(context,
         absl::StrCat("flop_per_s_one_thread: 1e18 "
                      "memory_buffer_bytes: 1 measured_unix_ns: ",
                      DaysAgo(7), " last_measured_unix_ns: ", last_unix_ns));
  };
  keep(Clock::Real()->WallNs());
  EXPECT_FALSE(RecentCeilings(context).has_l1_read_bytes_per_s());
  // Readings that are old, or of a clock that was ahead, do not count.
  for (const int64_t last_unix_ns : {DaysAgo(1), DaysAgo(-1)}) {
    keep(last_unix_ns);
    const proto::Ceilings ceilings = RecentCeilings(context);
    EXPECT_TRUE(ceilings.has_l1_read_bytes_per_s());
    EXPECT_GT(ceilings.last_measured_unix_ns(), DaysAgo(1));
    EXPECT_LE(ceilings.last_measured_unix_ns(), Clock::Real()->WallNs());
  }
}

TEST_F(RunContextTest, CeilingsDoWithoutAReadableOrWritableFile) {
  const RunContext context = Find();
  // The folder's name is taken by a file.
  ASSERT_TRUE(CreateDirectories(DirectoryOf(context.state)).ok());
  ASSERT_TRUE(WriteFileAtomically(context.state, "in the way").ok());
  ::testing::internal::CaptureStderr();
  EXPECT_GT(CeilingsOf(context).flop_per_s_one_thread(), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(context.state));
}

TEST_F(RunContextTest, APlanHasThePlacesAndTheHardwareAndWritesNothing) {
  std::string note;
  const auto plan = PlanRunContext(proto::CPU, "", "kept", &note);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(note, "");
  EXPECT_FALSE(FileExists(JoinPath(workspace_, ".optrail")));
  const RunContext context = Find("", "kept");
  EXPECT_EQ(plan->hardware.id(), context.hardware.id());
  EXPECT_EQ(plan->store, context.store);
  EXPECT_EQ(plan->history, context.history);
  EXPECT_EQ(plan->state, context.state);
}

}  // namespace
}  // namespace optrail::suites
