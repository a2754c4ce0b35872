#include "tracker/watch/watch_command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/checkout/repository_test_fixture.h"
#include "tracker/history/history.h"
#include "tracker/watch/failures.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WatchCommandTest : public ::testing::Test {
 protected:
  WatchCommandTest() {
    root_ = JoinPath(::testing::TempDir(), "watch");
    std::filesystem::remove_all(root_);
    EXPECT_TRUE(CreateDirectories(root_).ok());
    options_.common.workspace = repository_.path();
    options_.common.history = JoinPath(root_, "history");
    options_.common.format = OutputFormat::kCsv;
    // `broken` stands for sources that no compiler takes.
    options_.build.build_command =
        "echo built >> " + JoinPath(root_, "builds") + "; [ ! -f broken ]";
    options_.build.run_command = "sh bench/program.in --benchmark_out={out} x";
    options_.build.trees.folder = JoinPath(root_, "kept");
    options_.suite = "fake";
    options_.hardware.set_id("here");
    options_.processes = 2;
    options_.quiet = true;
  }

  int Watch() {
    out_.str("");
    const absl::StatusOr<int> code = RunWatch(options_, out_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  std::vector<std::string> RecordedCommits() {
    std::vector<std::string> commits;
    const std::vector<RunInfo> runs =
        History::Open(options_.common.history)->ListRuns({})->runs;
    for (const RunInfo& run : runs) {
      EXPECT_EQ(run.header.suite(), "fake");
      EXPECT_EQ(run.header.hardware().id(), "here");
      EXPECT_EQ(run.header.commit().branch(), "main");
      commits.push_back(run.header.commit().id());
    }
    return commits;
  }

  int Builds() {
    const auto text = ReadFile(JoinPath(root_, "builds"));
    return text.ok() ? static_cast<int>(text->size() / 6) : 0;
  }

  FakeRepository repository_;
  std::string root_;
  WatchCommand options_;
  std::ostringstream out_;
};

TEST_F(WatchCommandTest, FillsGapsNewestFirstAndGoesOn) {
  std::vector<std::string> commits;
  for (int i = 0; i < 5; ++i) commits.push_back(repository_.Commit(1000 + i));
  options_.limit = 2;
  EXPECT_EQ(Watch(), 0);
  EXPECT_THAT(RecordedCommits(), ElementsAre(commits[3], commits[4]));
  // The newest once more, and then what was left.
  options_.limit = 0;
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(RecordedCommits().size(), 5);
  EXPECT_EQ(Builds(), 5);
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(Builds(), 5);
  commits.push_back(repository_.Commit(1100));
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(Builds(), 6);
  EXPECT_EQ(RecordedCommits().size(), 6);
}

TEST_F(WatchCommandTest, TheRangeLimitsIt) {
  const std::string first = repository_.Commit(1000);
  const std::string second = repository_.Commit(1001);
  repository_.Commit(1002);
  options_.range = first + ".." + second;
  EXPECT_EQ(Watch(), 0);
  EXPECT_THAT(RecordedCommits(), ElementsAre(second));
}

TEST_F(WatchCommandTest, ANameOfTwoLinesIsRefusedBeforeAnythingIsBuilt) {
  repository_.Commit(1000);
  for (std::string* const name : {&options_.suite, &options_.branch}) {
    const std::string before = std::exchange(*name, "a\nb");
    EXPECT_THAT(std::string(RunWatch(options_, out_).status().message()),
                HasSubstr("='a\\nb': expected a name in one line"));
    *name = before;
  }
  EXPECT_EQ(Builds(), 0);
}

TEST_F(WatchCommandTest, EachProcessIsOneMeasurement) {
  repository_.Commit(1000);
  EXPECT_EQ(Watch(), 0);
  const History history = *History::Open(options_.common.history);
  const auto run = history.ReadRun(history.ListRuns({})->runs.at(0).id());
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->results_size(), 1);
  EXPECT_EQ(run->results(0).measurements_size(), 2);
  EXPECT_EQ(run->source_digests_size(), 0);
}

TEST_F(WatchCommandTest, WhatFailsIsSaidAndSkippedUntilAskedFor) {
  repository_.Commit(1000);
  const std::string broken = repository_.CommitThatDoesNotBuild();
  EXPECT_EQ(Watch(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("does not build"));
  EXPECT_EQ(Builds(), 2);
  EXPECT_EQ(Watch(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("skipped"));
  EXPECT_EQ(Builds(), 2);
  options_.retry_failed = true;
  EXPECT_EQ(Watch(), 3);
  EXPECT_EQ(Builds(), 3);
  // Another command is another question.
  options_.retry_failed = false;
  options_.build.build_command = "true";
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(RecordedCommits().size(), 2);
}

TEST_F(WatchCommandTest, ATreeThatWasLeftInPiecesIsMadeAnew) {
  repository_.Commit(1000);
  EXPECT_EQ(Watch(), 0);
  repository_.Commit(1001);
  // A process that is killed within `git worktree add` leaves this.
  ASSERT_TRUE(RemoveFile(JoinPath(root_, "kept/tree_c/.git")).ok());
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(RecordedCommits().size(), 2);
}

TEST_F(WatchCommandTest, KilledInABuildOrARunItGoesOnWhereItWas) {
  std::vector<std::string> commits;
  for (int i = 0; i < 3; ++i) commits.push_back(repository_.Commit(1000 + i));
  // Every build and every run is a step; at the given one the watch is killed.
  const std::string steps = JoinPath(root_, "steps");
  const std::string pid_file = JoinPath(root_, "pid");
  const std::string die_at = JoinPath(root_, "die_at");
  const std::string step = absl::StrCat(
      "echo x >> ", steps, "; if [ $(wc -l < ", steps, ") -ge $(cat ", die_at,
      ") ]; then kill -9 $(cat ", pid_file, "); exit 1; fi; ");
  options_.build.build_command = step + options_.build.build_command;
  options_.build.run_command = step + options_.build.run_command;
  int kills = 0;
  for (int at = 1, status = -1; status != 0; ++at) {
    ASSERT_LE(at, 10);
    RemoveFile(steps).IgnoreError();
    ASSERT_TRUE(WriteFileAtomically(die_at, absl::StrCat(at)).ok());
    const pid_t watch = fork();
    if (watch == 0) {
      const bool written =
          WriteFileAtomically(pid_file, absl::StrCat(getpid())).ok();
      const absl::StatusOr<int> code = RunWatch(options_, out_);
      _exit(written && code.ok() ? *code : 99);
    }
    ASSERT_EQ(waitpid(watch, &status, 0), watch);
    ASSERT_TRUE(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == 9))
        << status;
    kills += status != 0;
  }
  // In the first build, its first run, its second, the next build, and so on.
  EXPECT_EQ(kills, 5);
  std::vector<std::string> recorded = RecordedCommits();
  EXPECT_THAT(recorded, ::testing::UnorderedElementsAreArray(commits));
  const History history = *History::Open(options_.common.history);
  const std::vector<RunInfo> runs = history.ListRuns({})->runs;
  for (const RunInfo& info : runs) {
    EXPECT_EQ(history.ReadRun(info.id())->results(0).measurements_size(), 2);
  }
}

TEST_F(WatchCommandTest, ARunThatMovesHeadIsNotOfTheCommit) {
  repository_.Commit(1000);
  const std::string first = repository_.Commit(1010);
  repository_.Commit(1020);
  options_.range = "HEAD~1..HEAD";
  options_.build.run_command =
      absl::StrCat("git checkout --quiet ", first,
                   " && sh bench/program.in --benchmark_out={out} x");
  EXPECT_EQ(Watch(), 3);
  EXPECT_THAT(out_.str(), HasSubstr("--run moved HEAD of its work tree"));
  EXPECT_THAT(RecordedCommits(), ElementsAre());
}

TEST_F(WatchCommandTest, TheLatestIsTheLastCommitNotTheLastMeasured) {
  for (const int time_ns : {1000, 1010, 1020}) repository_.Commit(time_ns);
  EXPECT_EQ(Watch(), 0);
  const History history = *History::Open(options_.common.history);
  const std::vector<std::string> commits = RecordedCommits();
  ASSERT_GE(commits.size(), 3);
  EXPECT_EQ(history.FindRun("latest")->header.commit().id(), commits.back());
  EXPECT_LT(history.FindRun("latest")->header.started_unix_ns(),
            history.FindRun("latest~1")->header.started_unix_ns());
}

TEST_F(WatchCommandTest, DryRunMeasuresNothing) {
  repository_.Commit(1000);
  options_.dry_run = true;
  EXPECT_EQ(Watch(), 0);
  EXPECT_EQ(Builds(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("to measure"));
}

TEST(FailuresTest, ALineThatWasCutOffIsIgnored) {
  const std::string path = JoinPath(::testing::TempDir(), "failures.jsonl");
  RemoveFile(path).IgnoreError();
  Failures failures = *Failures::Read(path, "make");
  ASSERT_TRUE(failures.Add("abc", "does not build").ok());
  const std::string torn = *ReadFile(path) + "{\"commit\": \"x";
  ASSERT_TRUE(WriteFileAtomically(path, torn).ok());
  failures = *Failures::Read(path, "make");
  ASSERT_TRUE(failures.Add("def", "crashed\xff\n").ok());
  failures = *Failures::Read(path, "make");
  ASSERT_NE(failures.Of("abc"), nullptr);
  ASSERT_NE(failures.Of("def"), nullptr);
  EXPECT_EQ(failures.Of("x"), nullptr);
  EXPECT_EQ(Failures::Read(path, "cmake")->Of("abc"), nullptr);
}

}  // namespace
}  // namespace optrail::tracker
