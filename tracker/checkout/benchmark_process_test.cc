#include "tracker/checkout/benchmark_process.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/checkout/temporary_folder.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

class BenchmarkProcessTest : public ::testing::Test {
 protected:
  BenchmarkProcessTest() : folder_(*TemporaryFolder::Create("test")) {}

  // A shell script that has $out set to what --benchmark_out says.
  BenchmarkProgram Program(const std::string& script) {
    BenchmarkProgram program;
    program.path = JoinPath(folder_->path(), "program;with $hostile name");
    EXPECT_TRUE(WriteFileAtomically(
                    program.path,
                    absl::StrCat("#!/bin/sh\nfor a; do case $a in "
                                 "--benchmark_out=*) "
                                 "out=${a#--benchmark_out=};; esac; done\n",
                                 script, "\n"))
                    .ok());
    EXPECT_EQ(chmod(program.path.c_str(), 0755), 0);
    return program;
  }

  ProcessResult Run(const BenchmarkProgram& program) {
    Interruptible interruptible;
    const auto result =
        RunBenchmarkProcess(program, folder_->path(), interruptible);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(ProcessResult());
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(BenchmarkProcessTest, ReturnsWhatTheProgramWrote) {
  BenchmarkProgram program = Program("echo \"$*\" > $out");
  program.args = {"--benchmark_filter=a b", "$(false)"};
  const ProcessResult result = Run(program);
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.files.at(0).content,
              HasSubstr("--benchmark_filter=a b $(false) "
                        "--benchmark_out="));
  EXPECT_THAT(result.files.at(0).content,
              HasSubstr("--benchmark_out_format=json"));
}

TEST_F(BenchmarkProcessTest, FailuresAreResultsWithTheirLastWords) {
  ProcessResult result = Run(Program("echo 'I am lost' >&2; kill -SEGV $$"));
  EXPECT_THAT(result.failure, HasSubstr("signal 11"));
  EXPECT_EQ(result.outcome, proto::CRASHED);
  EXPECT_THAT(result.stderr_tail, HasSubstr("I am lost"));

  result = Run(Program("exit 4"));
  EXPECT_THAT(result.failure, HasSubstr("code 4"));

  BenchmarkProgram slow = Program("sleep 600");
  slow.deadline = absl::Milliseconds(100);
  result = Run(slow);
  EXPECT_EQ(result.outcome, proto::TIMED_OUT);
}

TEST_F(BenchmarkProcessTest, AProgramThatWritesNothingHasFailed) {
  // Results of the process before must not be taken for its own.
  EXPECT_EQ(Run(Program("echo '{}' > $out")).failure, "");
  EXPECT_THAT(Run(Program("exit 0")).failure, HasSubstr("wrote no results"));
}

TEST_F(BenchmarkProcessTest, LastWordsAreSafeToPrintAndFew) {
  const ProcessResult result =
      Run(Program("for i in $(seq 100); do echo line$i; done >&2;"
                  "printf '\\033[31mred' >&2; exit 1"));
  EXPECT_EQ(result.stderr_tail.find('\033'), std::string::npos);
  EXPECT_THAT(result.stderr_tail, HasSubstr("line100"));
  EXPECT_EQ(result.stderr_tail.find("line70\n"), std::string::npos);
}

TEST_F(BenchmarkProcessTest, ChecksThatAProgramIsOne) {
  EXPECT_TRUE(CheckExecutable("/bin/sh").ok());
  EXPECT_THAT(std::string(CheckExecutable("/no/such").message()),
              HasSubstr("/no/such"));
  EXPECT_THAT(std::string(CheckExecutable(folder_->path()).message()),
              HasSubstr("is a folder"));
}

TEST(TemporaryFolderTest, GoesWithAllItHoldsReadOnlyFoldersToo) {
  std::string path;
  {
    const auto folder = *TemporaryFolder::Create("test");
    path = folder->path();
    const std::string locked = JoinPath(path, "locked");
    ASSERT_TRUE(CreateDirectories(locked).ok());
    ASSERT_TRUE(WriteFileAtomically(JoinPath(locked, "file"), "x").ok());
    ASSERT_EQ(chmod(locked.c_str(), 0500), 0);
    ASSERT_TRUE(FileExists(path));
  }
  EXPECT_FALSE(FileExists(path));
}

TEST(TemporaryFolderTest, LeavesWhatItLinksTo) {
  const auto kept = *TemporaryFolder::Create("kept");
  const std::string file = JoinPath(kept->path(), "file");
  ASSERT_TRUE(WriteFileAtomically(file, "x").ok());
  {
    const auto folder = *TemporaryFolder::Create("test");
    std::filesystem::create_directory_symlink(kept->path(),
                                              JoinPath(folder->path(), "link"));
  }
  EXPECT_TRUE(FileExists(file));
}

}  // namespace
}  // namespace optrail::tracker
