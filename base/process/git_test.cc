#include "base/process/git.h"

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;

// A folder of its own per test, in which git sees no configuration but ours.
class GitTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ =
        JoinPath(testing::TempDir(),
                 testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(CreateDirectories(dir_).ok());
    // The test may run inside the repository of its own sources.
    setenv("GIT_CEILING_DIRECTORIES", testing::TempDir().c_str(), 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    for (const char* who : {"AUTHOR", "COMMITTER"}) {
      setenv(absl::StrCat("GIT_", who, "_NAME").c_str(), "A", 1);
      setenv(absl::StrCat("GIT_", who, "_EMAIL").c_str(), "a@example.com", 1);
      setenv(absl::StrCat("GIT_", who, "_DATE").c_str(), "1700000000 +0000", 1);
    }
    if (absl::IsNotFound(RunCommand({"git", "--version"}).status())) {
      GTEST_SKIP() << "git is not installed";
    }
  }

  std::string Shell(const std::string& script) {
    CommandOptions options;
    options.working_directory = dir_;
    const absl::StatusOr<CommandResult> result =
        RunCommand({"/bin/sh", "-ec", script}, options);
    EXPECT_TRUE(result.ok() && result->exit.ok())
        << script << ": " << (result.ok() ? result->stderr_text : "");
    return std::string(absl::StripAsciiWhitespace(result->stdout_text));
  }

  // main: A - B - M - C, where M merges X - Y that began at A.
  void MakeHistory() {
    Shell(R"(git init -q -b main .
             commit() { git commit -q --allow-empty -m "$1"; }
             commit A; git checkout -q -b side; commit X; commit Y
             git checkout -q main; commit B
             git merge -q --no-ff -m M side; commit 'C: the last one')");
  }

  std::string dir_;
};

TEST_F(GitTest, FindsFacts) {
  MakeHistory();
  Shell("mkdir sub");
  const absl::StatusOr<GitFacts> facts = FindGitFacts(JoinPath(dir_, "sub"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->top_level, Shell("pwd -P"));
  EXPECT_EQ(facts->commit, Shell("git rev-parse HEAD"));
  EXPECT_EQ(facts->first_parent_position, 4);
  EXPECT_EQ(facts->branch, "main");
  EXPECT_EQ(facts->commit_time_unix_s, 1700000000);
  EXPECT_EQ(facts->subject, "C: the last one");
  EXPECT_FALSE(facts->dirty);
  EXPECT_FALSE(facts->shallow);
}

TEST_F(GitTest, SeesADirtyTreeFromACleanCorner) {
  MakeHistory();
  Shell("mkdir sub; echo text > new");
  EXPECT_TRUE(FindGitFacts(JoinPath(dir_, "sub"))->dirty);
  Shell("echo new > .gitignore; git add .gitignore; git commit -q -m D");
  EXPECT_FALSE(FindGitFacts(dir_)->dirty);
  Shell("echo more >> .gitignore");
  EXPECT_TRUE(FindGitFacts(dir_)->dirty);
}

TEST_F(GitTest, OurOwnFilesAreNoChanges) {
  MakeHistory();
  Shell("mkdir -p .optrail/history sub/.optrail");
  Shell("echo run > .optrail/history/run; echo text > sub/.optrail/file");
  EXPECT_FALSE(FindGitFacts(dir_)->dirty);
  Shell(
      "git add -f .optrail; git commit -q -m D; echo 2 > .optrail/history/run");
  EXPECT_FALSE(FindGitFacts(dir_)->dirty);
  Shell("echo text > sub/optrail");
  EXPECT_TRUE(FindGitFacts(dir_)->dirty);
}

TEST_F(GitTest, DetachedHeadHasNoBranch) {
  MakeHistory();
  Shell("git checkout -q HEAD~1");
  const GitFacts facts = FindGitFacts(dir_).value();
  EXPECT_EQ(facts.branch, "");
  EXPECT_EQ(facts.first_parent_position, 3);
}

TEST_F(GitTest, CountsOnlyFirstParents) {
  MakeHistory();
  EXPECT_EQ(FirstParentPosition(dir_, "HEAD").value(), 4);
  EXPECT_EQ(FirstParentPosition(dir_, "side").value(), 3);
  EXPECT_EQ(FirstParentPosition(dir_, "main~3").value(), 1);
}

TEST_F(GitTest, DiffsTwoCommits) {
  MakeHistory();
  Shell("echo a > file; git add file; git commit -q -m D");
  EXPECT_EQ(DiffCommits(dir_, "main~1", "main~2").value(), "");
  EXPECT_THAT(DiffCommits(dir_, "main~1", "main").value(),
              testing::EndsWith("+++ b/file\n@@ -0,0 +1 @@\n+a"));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      DiffCommits(dir_, "main", "--output=x").status()));
}

TEST_F(GitTest, FindsTheMergeBase) {
  MakeHistory();
  EXPECT_EQ(MergeBase(dir_, "main~2", "side").value(),
            ResolveCommit(dir_, "main~3").value());
  Shell("git checkout -q --orphan other; git commit -q --allow-empty -m O");
  EXPECT_TRUE(absl::IsNotFound(MergeBase(dir_, "main", "other").status()));
  for (const std::string name : {"no-such-commit", "", "--all"}) {
    const absl::Status status = MergeBase(dir_, "main", name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("\"", name, "\"")));
  }
}

TEST_F(GitTest, UnknownCommitIsNotFoundAndNamed) {
  MakeHistory();
  for (const std::string name : {"no-such-commit", "", "--all", "-n1", "main~9",
                                 "0123456789012345678901234567890123456789"}) {
    const absl::Status status = ResolveCommit(dir_, name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("\"", name, "\"")));
  }
  EXPECT_TRUE(absl::IsNotFound(FirstParentPosition(dir_, "nope").status()));
}

TEST_F(GitTest, OutsideOfARepositoryIsSaid) {
  const absl::Status status = FindGitFacts(dir_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("not in a git repository"));
  EXPECT_THAT(status.message(), HasSubstr(dir_));
}

TEST_F(GitTest, MissingFolderIsSaid) {
  const absl::Status status = FindGitFacts(JoinPath(dir_, "none")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("none"));
}

TEST_F(GitTest, RepositoryWithoutCommitIsSaid) {
  Shell("git init -q .");
  const absl::Status status = FindGitFacts(dir_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("no commit yet"));
}

TEST_F(GitTest, ShallowCloneDoesNotPretendToKnowPositions) {
  MakeHistory();
  Shell("git clone -q --depth 1 \"file://$PWD\" clone");
  const std::string clone = JoinPath(dir_, "clone");
  const GitFacts facts = FindGitFacts(clone).value();
  EXPECT_TRUE(facts.shallow);
  EXPECT_FALSE(facts.first_parent_position.has_value());
  const absl::Status status = FirstParentPosition(clone, "HEAD").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("unshallow"));
  EXPECT_THAT(ResolveCommit(clone, "HEAD~1").status().message(),
              HasSubstr("unshallow"));
}

TEST_F(GitTest, MissingGitIsSaid) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", dir_.c_str(), 1);
  const absl::Status status = FindGitFacts(dir_).status();
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("git is not installed"));
}

TEST(WorkspaceDirectoryTest, IsWhereBazelRunWasCalled) {
  setenv("BUILD_WORKSPACE_DIRECTORY", "/some/where", 1);
  EXPECT_EQ(WorkspaceDirectory(), "/some/where");
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  EXPECT_TRUE(FileExists(WorkspaceDirectory()));
}

TEST(WorkspaceDirectoryTest, IsTheWorkTreeAboveTheFolder) {
  const std::string top = ::testing::TempDir() + "/tree";
  ASSERT_TRUE(CreateDirectories(top + "/.git").ok());
  ASSERT_TRUE(CreateDirectories(top + "/a/b").ok());
  setenv("BUILD_WORKING_DIRECTORY", (top + "/a/b").c_str(), 1);
  EXPECT_EQ(WorkspaceDirectory(), top);
  EXPECT_EQ(WorkingDirectory(), top + "/a/b");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

}  // namespace
}  // namespace optrail
