#include "tracker/import/import_command.h"

#include <atomic>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class ImportCommandTest : public ::testing::Test {
 protected:
  ImportCommandTest() {
    static int count = 0;
    root_ = JoinPath(::testing::TempDir(), absl::StrCat("import", count++));
    std::filesystem::remove_all(root_);
    EXPECT_TRUE(CreateDirectories(JoinPath(root_, "tree")).ok());
    options_.common.history = JoinPath(root_, "history");
    options_.common.workspace = JoinPath(root_, "tree");
    options_.common.format = OutputFormat::kJson;
    Git({"init", "--quiet", "--initial-branch=main"});
    first_ = Commit();
    second_ = Commit();
  }

  std::string Git(const std::vector<std::string>& args) {
    std::vector<std::string> argv = {
        "git",         "-C", options_.common.workspace, "-c",
        "user.name=T", "-c", "user.email=t@example.org"};
    argv.insert(argv.end(), args.begin(), args.end());
    const auto result = RunCommand(argv);
    EXPECT_TRUE(result.ok() && result->exit.ok()) << args[0];
    return std::string(absl::StripAsciiWhitespace(result->stdout_text));
  }

  std::string Commit() {
    // Equal commits of one second would be one commit.
    Git({"commit", "--quiet", "--allow-empty", "--message",
         absl::StrCat("commit ", ++commits_)});
    return Git({"rev-parse", "HEAD"});
  }

  std::string File(const std::string& name, const std::string& content) {
    const std::string path = JoinPath(root_, name);
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }

  absl::StatusOr<int> Import(const std::vector<std::string>& files) {
    options_.files = files;
    out_.str("");
    return RunImport(options_, out_);
  }

  std::vector<RunInfo> Runs() {
    return History::Open(options_.common.history)->ListRuns({})->runs;
  }

  int commits_ = 0;
  std::string root_, first_, second_;
  ImportCommand options_;
  std::ostringstream out_;
};

TEST_F(ImportCommandTest, AnOlderCommitOfTheBranchIsOnIt) {
  options_.commit = "HEAD~1";
  ASSERT_EQ(*Import({File("a.csv", "a,1\n")}), 0);
  ASSERT_EQ(Runs().size(), 1);
  const proto::Commit commit = Runs()[0].header.commit();
  EXPECT_EQ(commit.id(), first_);
  EXPECT_EQ(commit.branch(), "main");
  EXPECT_EQ(commit.first_parent_position(), 1);
  EXPECT_EQ(commit.subject(), "commit 1");
  EXPECT_GT(commit.commit_unix_ns(), 0);
}

TEST_F(ImportCommandTest, ACommitOfAnotherBranchIsSaidToHaveNone) {
  Git({"checkout", "--quiet", "-b", "other", first_});
  const std::string other = Commit();
  Git({"checkout", "--quiet", "main"});
  options_.commit = other;
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(*Import({File("a.csv", "a,1\n")}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("is not on branch main"));
  EXPECT_EQ(Runs()[0].header.commit().branch(), "");
  options_.branch = "other";
  ASSERT_EQ(*Import({File("b.csv", "a,2\n")}), 0);
  EXPECT_EQ(Runs()[1].header.commit().branch(), "other");
}

TEST_F(ImportCommandTest, TheSameFilesAreNotImportedTwice) {
  const std::string a = File("a.csv", "a,1\n"), b = File("b.csv", "a,2\n");
  options_.files_are_processes = true;
  ASSERT_EQ(*Import({a, b}), 0);
  ::testing::internal::CaptureStderr();
  // Under another name, in another order.
  EXPECT_EQ(*Import({File("copy.csv", "a,2\n"), a}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("already imported"));
  EXPECT_EQ(Runs().size(), 1);
  EXPECT_EQ(nlohmann::json::parse(out_.str())[0]["imported"], "already");
  // A part of them.
  EXPECT_THAT(
      std::string(Import({b, File("c.csv", "a,3\n")}).status().message()),
      HasSubstr("1 of the 2 files are in run"));
  options_.again = true;
  EXPECT_EQ(*Import({a, b}), 0);
  EXPECT_EQ(Runs().size(), 2);
}

constexpr char kDated[] = R"({"context": {"date": "2026-11-20T09:08:07+00:00"},
    "benchmarks": [{"name": "a", "iterations": 9, "real_time": 5,
                    "time_unit": "ns"}]})";

TEST_F(ImportCommandTest, ADatedFileIsOneMeasurementAtWhateverCommit) {
  const std::string file = File("a.json", kDated);
  ASSERT_EQ(*Import({file}), 0);
  Commit();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(*Import({file}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("gets no run from them"));
  EXPECT_EQ(Runs().size(), 1);
  options_.hardware_id = "another-4c";
  EXPECT_THAT(std::string(Import({file}).status().message()),
              HasSubstr("of imported, not of another-4c"));
  options_.hardware_id = "";
  options_.commit = "HEAD~2";
  EXPECT_THAT(std::string(Import({file}).status().message()),
              HasSubstr("already imported as run"));
}

TEST_F(ImportCommandTest, WhatCannotBeADateIsRefusedAndTheFutureIsSaid) {
  const auto dated = [&](const std::string& date) {
    return File(absl::StrCat("d", date.size(), ".json"),
                absl::StrCat(R"({"context": {"date": )", date,
                             R"(}, "benchmarks": [{"name": "a",)",
                             R"("iterations": 9, "real_time": 5,)",
                             R"("time_unit": "ns"}]})"));
  };
  for (const char* date : {R"("yesterday")", R"("1903-01-01 00:00:00")", "7",
                           R"("9999-11-20T09:08:07+00:00")"}) {
    EXPECT_THAT(std::string(Import({dated(date)}).status().message()),
                AllOf(HasSubstr(date), HasSubstr("date is"),
                      HasSubstr("expected a date from 1970")));
  }
  EXPECT_TRUE(Runs().empty());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(*Import({dated(R"("2126-11-20T09:08:07+00:00")")}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("is dated 2126-11-20 09:08:07 UTC, in the future"));
  EXPECT_EQ(*Import({dated(R"("2016-11-20 10:00:00.5+01:00")")}), 0)
      << "by Python";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(*Import({dated(R"("2016/11/20-09:08:07")")}), 0)
      << "of version 1.0";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Not(HasSubstr("in the future")));
}

TEST_F(ImportCommandTest, CountsThatDoNotChangeAreARunOfEveryCommit) {
  const std::string file = File("counts.csv", "instructions,1000\n");
  ASSERT_EQ(*Import({file}), 0);
  const std::string third = Commit();
  ASSERT_EQ(*Import({file}), 0);
  ASSERT_EQ(*Import({file}), 0) << "and of each one";
  ASSERT_EQ(Runs().size(), 2);
  EXPECT_EQ(Runs()[1].header.commit().id(), third);
  options_.hardware_id = "another-4c";
  ASSERT_EQ(*Import({file}), 0) << "and of every machine";
  EXPECT_EQ(Runs().size(), 3);
}

TEST_F(ImportCommandTest, OfImportsOfTheSameFilesAtOnceOneRecords) {
  const std::string a = File("a.csv", "a,1\n"), b = File("b.csv", "a,1\n");
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ImportCommand options = options_;
      options.files = {a, b};
      options.files_are_processes = true;
      std::ostringstream out;
      const absl::StatusOr<int> code = RunImport(options, out);
      failed += !code.ok() || *code != 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Runs().size(), 1);
}

TEST_F(ImportCommandTest, ResultsOfThisMachineHaveItsId) {
  options_.machine.set_id("amd-epyc-zen4-2c");
  options_.machine.set_cores(2);
  options_.machine.set_l3_bytes(32 << 20);
  ASSERT_EQ(*Import({File("a.csv", "a,1\n")}), 0);
  const std::string other = R"({"context": {"num_cpus": 5000, "caches": []},
      "benchmarks": [{"name": "a", "iterations": 9, "real_time": 5,
                    "time_unit": "ns"}]})";
  ASSERT_EQ(*Import({File("b.json", other)}), 0);
  std::vector<std::string> ids;
  for (const RunInfo& run : Runs()) ids.push_back(run.header.hardware().id());
  EXPECT_THAT(ids, UnorderedElementsAre("amd-epyc-zen4-2c", "imported-5000c"));
}

TEST_F(ImportCommandTest, SeriesOfImportsBeforeGoOn) {
  ASSERT_EQ(*Import({File("a.csv", "a,1\n")}), 0);
  options_.machine.set_id("amd-epyc-zen4-2c");
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(*Import({File("b.csv", "a,2\n")}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("this machine is amd-epyc-zen4-2c"));
  for (const RunInfo& run : Runs()) {
    EXPECT_EQ(run.header.hardware().id(), "imported");
  }
}

TEST_F(ImportCommandTest, AFileThatNamesItsCommitIsOfThatCommit) {
  const std::string text =
      absl::StrCat(R"({"machine_info": {}, "commit_info": {"id": ")", first_,
                   R"(", "dirty": true, "branch": "main"}, "benchmarks": [
          {"fullname": "t", "stats": {"median": 0.5}}]})");
  ASSERT_EQ(*Import({File("a.json", text)}), 0);
  const proto::Commit commit = Runs()[0].header.commit();
  EXPECT_EQ(commit.id(), first_);
  EXPECT_TRUE(commit.dirty());
  EXPECT_EQ(commit.branch(), "main");
}

}  // namespace
}  // namespace optrail::tracker
