#include "tracker/ab/ab_command.h"

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/checkout/repository_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AbCommandTest : public ::testing::Test {
 protected:
  AbCommandTest() {
    // So that what is left behind would be found.
    scratch_ = JoinPath(::testing::TempDir(), "scratch");
    std::filesystem::remove_all(scratch_);
    EXPECT_TRUE(CreateDirectories(scratch_).ok());
    repository_ = std::make_unique<FakeRepository>();
    setenv("TMPDIR", scratch_.c_str(), 1);
    options_.common.workspace = repository_->path();
    options_.common.format = OutputFormat::kJson;
    options_.build.target = "//bench:program";
    options_.quiet = true;
  }
  ~AbCommandTest() override { unsetenv("TMPDIR"); }

  absl::StatusOr<int> Binaries(const std::string& a, const std::string& b) {
    options_.a = a;
    options_.b = b;
    out_.str("");
    return RunCompareBinaries(options_, out_);
  }

  absl::StatusOr<int> Commits(const std::string& a, const std::string& b) {
    options_.a = a;
    options_.b = b;
    out_.str("");
    const absl::StatusOr<int> code = RunCompareCommits(options_, out_);
    EXPECT_EQ(repository_->Worktrees(), 1);
    EXPECT_TRUE(std::filesystem::is_empty(scratch_));
    return code;
  }

  std::string Verdict() {
    const nlohmann::json json = nlohmann::json::parse(out_.str());
    return json.at(0).at("verdict");
  }

  std::string scratch_;
  std::unique_ptr<FakeRepository> repository_;
  AbCommand options_;
  std::ostringstream out_;
};

TEST_F(AbCommandTest, ASlowerBinaryIsExitCode1AndAFasterOneIs0) {
  const std::string fast = repository_->Program("fast", 1000);
  const std::string slow = repository_->Program("slow", 1100);
  EXPECT_EQ(*Binaries(fast, slow), 1);
  EXPECT_EQ(Verdict(), "slower");
  EXPECT_EQ(*Binaries(slow, fast), 0);
  EXPECT_EQ(Verdict(), "faster");
  EXPECT_TRUE(std::filesystem::is_empty(scratch_));
}

TEST_F(AbCommandTest, EqualBytesAreNotMeasured) {
  const std::string a = repository_->Program("a", 1000);
  const std::string b = repository_->Program("b", 1000);
  EXPECT_EQ(*Binaries(a, b), 0);
  EXPECT_EQ(Verdict(), "identical");
  EXPECT_FALSE(FileExists(a + ".count"));
}

TEST_F(AbCommandTest, AGateOfEqualBytesThatMeasureNothingIsNotGreen) {
  options_.policy = "";
  EXPECT_EQ(*Binaries(repository_->Program("a", 1000),
                      repository_->Program("b", 1000)),
            0);
  EXPECT_THAT(out_.str(), HasSubstr("measured 1 benchmark\""));

  const std::string broken = repository_->ProgramThatFails("c");
  EXPECT_EQ(*Binaries(broken, repository_->ProgramThatFails("d")), 3);
  const nlohmann::json json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["reason"], "inconclusive");
  EXPECT_THAT(std::string(json["summary"]),
              HasSubstr("measured no benchmark: BM_x (CRASHED: no input)"));

  // The filter leaves nothing that a rule gates.
  options_.filter = "BM_y";
  EXPECT_EQ(*Binaries(broken, repository_->ProgramThatFails("e")), 3);
  EXPECT_THAT(out_.str(), HasSubstr("no_benchmark"));
}

TEST_F(AbCommandTest, TooFewRoundsAreExitCode3) {
  options_.max_rounds = 5;
  options_.detect_effect = options_.min_effect = .0012;
  EXPECT_EQ(*Binaries(repository_->Program("a", 1000),
                      repository_->Program("b", 1001)),
            3);
}

TEST_F(AbCommandTest, NamesWhatIsNoProgram) {
  const std::string a = repository_->Program("a", 1000);
  EXPECT_THAT(std::string(Binaries(a, "/no/such").status().message()),
              HasSubstr("/no/such"));
  options_.filter = "(";
  EXPECT_THAT(
      std::string(Binaries(a, repository_->Program("b", 1)).status().message()),
      HasSubstr("--filter='('"));
}

TEST_F(AbCommandTest, ComparesTwoCommitsAndCleansUp) {
  const std::string fast = repository_->Commit(1000);
  repository_->Commit(1200);
  EXPECT_EQ(*Commits(fast, "main"), 1);
  EXPECT_EQ(Verdict(), "slower");
  EXPECT_THAT(repository_->BazelCommands(),
              ElementsAre("build", "info", "build", "info", "shutdown"));
}

TEST_F(AbCommandTest, CommitsThatBuildTheSameProgramAreIdentical) {
  const std::string a = repository_->Commit(1000);
  const std::string b = repository_->Commit(1000);
  EXPECT_EQ(*Commits(a, b), 0);
  EXPECT_EQ(Verdict(), "identical");
}

TEST_F(AbCommandTest, LeavesTheWorkingTreeAsItIs) {
  repository_->Commit(1000);
  repository_->Commit(1200);
  const std::string file = JoinPath(repository_->path(), "number");
  ASSERT_TRUE(WriteFileAtomically(file, "not committed").ok());
  EXPECT_TRUE(Commits("HEAD~1", "HEAD").ok());
  EXPECT_EQ(*ReadFile(file), "not committed");
}

TEST_F(AbCommandTest, AnUnknownCommitIsAnErrorBeforeAnythingIsBuilt) {
  const std::string a = repository_->Commit(1000);
  EXPECT_THAT(std::string(Commits(a, "no-such-branch").status().message()),
              HasSubstr("no-such-branch"));
  EXPECT_THAT(std::string(Commits(a, "--upload-pack=x").status().message()),
              HasSubstr("--upload-pack=x"));
  EXPECT_TRUE(repository_->BazelCommands().empty());
}

TEST_F(AbCommandTest, AFailingBuildIsAnErrorWithItsLog) {
  const std::string a = repository_->Commit(1000);
  const std::string b = repository_->CommitThatDoesNotBuild();
  const std::string message(Commits(a, b).status().message());
  EXPECT_THAT(message, HasSubstr("broken on purpose"));
  EXPECT_THAT(message, HasSubstr(b.substr(0, 12)));
  EXPECT_THAT(repository_->BazelCommands(), Contains("shutdown"));
}

TEST_F(AbCommandTest, ATargetThatOneCommitLacksIsAnError) {
  const std::string a = repository_->Commit(1000);
  const std::string b = repository_->CommitWithoutTarget();
  EXPECT_THAT(std::string(Commits(a, b).status().message()),
              HasSubstr("has no target //bench:program"));
}

TEST_F(AbCommandTest, RefusesWhatIsNotTheLabelOfOneTarget) {
  const std::string a = repository_->Commit(1000);
  for (const char* target :
       {"", "bench:program", "//...", "//bench/...", "//bench:all", "//:",
        "//bench:program --config=evil", "-//bench:program", "@other//x:y"}) {
    options_.build.target = target;
    EXPECT_THAT(std::string(Commits(a, a).status().message()),
                HasSubstr("--target="))
        << target;
  }
}

TEST_F(AbCommandTest, OutsideARepositoryItSaysSo) {
  options_.common.workspace = "/";
  options_.a = options_.b = "HEAD";
  EXPECT_THAT(std::string(RunCompareCommits(options_, out_).status().message()),
              HasSubstr("not in a git repository"));
}

using AbCommandDeathTest = AbCommandTest;

TEST_F(AbCommandDeathTest, AnInterruptedBuildLeavesNothingBehind) {
  const std::string a = repository_->Commit(1000);
  const std::string b = repository_->CommitThatInterrupts();
  options_.a = a;
  options_.b = b;
  EXPECT_EXIT(RunCompareCommits(options_, out_).status().IgnoreError(),
              ::testing::KilledBySignal(SIGINT), "interrupted");
  EXPECT_EQ(repository_->Worktrees(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_));
}

TEST(FlagsOfTest, LinesThatAreContinuedAreOneToCopy) {
  BuildOptions options;
  options.build_command = "make";
  options.run_command = "./bench --a \\\n    --b";
  EXPECT_EQ(FlagsOf(options), "--build=make --run='./bench --a --b'");
}

}  // namespace
}  // namespace optrail::tracker
