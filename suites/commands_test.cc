// `tune` from its command line, with real workers: what only its drivers and
// flags together can get wrong.

#include "suites/commands.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/worker.h"
#include "tracker/history.h"

namespace optrail::suites {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWorkload[] = R"(
name: "tiny"
layer { operator_name: "add" shape: "n=64/f32" count: 1 }
layer { operator_name: "add" shape: "n=4096/f32" count: 100 }
layer { operator_name: "add" shape: "n=128/f32" count: 1 }
)";

class TuneCommandTest : public ::testing::Test {
 protected:
  TuneCommandTest()
      : folder_(JoinPath(
            ::testing::TempDir(),
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    workload_ = JoinPath(folder_, "tiny.workload.textproto");
    EXPECT_TRUE(WriteFileAtomically(workload_, kWorkload).ok());
  }

  // The exit code; what was printed is in `out_` and `err_`.
  int Tune(const std::vector<std::string>& flags) {
    absl::FlagSaver saver;
    std::vector<std::string> args = {"tune",
                                     "--quiet",
                                     "--format=csv",
                                     "--processes=1",
                                     "--finalists=1",
                                     "--strategy=random",
                                     "--workload=" + workload_};
    args.insert(args.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(&arg[0]);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunSingleCommand(
        "tune", TuneCommand(""), static_cast<int>(argv.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  std::vector<tracker::SessionInfo> Sessions() const {
    const auto history =
        tracker::History::Open(JoinPath(folder_, ".optrail/history"));
    return history->ListSessions()->sessions;
  }

  std::vector<std::string> Journals() const {
    const auto names =
        ListDirectory(JoinPath(folder_, ".optrail/state/tuning"));
    return names.value_or(std::vector<std::string>());
  }

  const std::string folder_;
  std::string workload_, out_, err_;
};

TEST_F(TuneCommandTest, ATotalIsDividedOverTheTasksAndRecorded) {
  Tune({"--total_trials=18"});
  int trials = 0;
  for (const tracker::SessionInfo& session : Sessions()) {
    trials += session.trial_count;
    EXPECT_EQ(session.header.budget().total_trials(), 18);
    EXPECT_FALSE(session.header.budget().has_time_ns());
  }
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
  EXPECT_EQ(trials, 18);
  EXPECT_THAT(Journals(), IsEmpty());
  EXPECT_THAT(out_, HasSubstr("trials_spent"));
}

TEST_F(TuneCommandTest, WithoutATotalEachTaskHasItsBudget) {
  Tune({"--trials=5"});
  for (const tracker::SessionInfo& session : Sessions()) {
    EXPECT_EQ(session.trial_count, 5);
    EXPECT_FALSE(session.header.budget().has_total_trials());
  }
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
}

TEST_F(TuneCommandTest, ATaskLearnsFromThoseTunedBeforeIt) {
  Tune({"--trials=16"});
  const std::vector<tracker::SessionInfo> sessions = Sessions();
  ASSERT_THAT(sessions, SizeIs(3)) << err_;
  const auto sources = [&](int i) {
    return sessions[i].header.source_session_ids();
  };
  // n = 64, 4096 and 128, in this order; the nearer ones first.
  EXPECT_THAT(sources(0), IsEmpty());
  EXPECT_THAT(sources(1), ElementsAre(sessions[0].id()));
  EXPECT_THAT(sources(2), ElementsAre(sessions[0].id(), sessions[1].id()));
  // Another call, told to forget.
  Tune({"--trials=16", "--retune", "--forget"});
  EXPECT_THAT(Sessions().back().header.source_session_ids(), IsEmpty());
}

TEST_F(TuneCommandTest, ATotalOfTimeEnds) {
  Tune({"--total_time=300ms"});
  EXPECT_THAT(Sessions(), SizeIs(3)) << err_;
}

TEST_F(TuneCommandTest, ATotalThatIsNoneIsRefusedAndNothingIsTuned) {
  const struct {
    const char* flag;
    const char* message;
  } cases[] = {
      {"--total_trials=-1", "--total_trials=-1: expected 0 to 100000000"},
      {"--total_trials=many", "total_trials"},
      {"--total_trials=2",
       "a total of 2 trials (--total_trials) for 3 tasks; expected at least "
       "one each"},
      {"--total_time=-5s", "--total_time=-5s: expected a duration such as 10m"},
      {"--total_time=inf", "expected a duration such as 10m"},
      {"--total_time=soon", "total_time"},
  };
  for (const auto& bad : cases) {
    EXPECT_EQ(Tune({bad.flag}), 2) << bad.flag;
    EXPECT_THAT(err_, HasSubstr(bad.message)) << bad.flag;
    EXPECT_THAT(Sessions(), IsEmpty());
    EXPECT_THAT(Journals(), IsEmpty());
  }
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker();
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
