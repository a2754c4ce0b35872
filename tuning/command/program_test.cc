#include "tuning/command/program.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    folder_ = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    Write("train", "one");
    Write("train.py", "two");
  }
  void Write(const std::string& name, const std::string& contents) {
    const std::string path = JoinPath(folder_, name);
    ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  std::vector<std::string> Paths(const std::string& command,
                                 const std::vector<std::string>& named = {}) {
    const auto files = ProgramFiles(command, named, folder_);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    for (const auto& file : *files) paths.push_back(file.path());
    return paths;
  }

  std::string folder_;
};

TEST_F(ProgramTest, IsTheFileThatTheFirstWordStandsFor) {
  EXPECT_THAT(Paths("./train --batch={batch}"),
              ElementsAre(EndsWith("/train")));
  EXPECT_THAT(Paths("THREADS=2 exec ./train {x} > log"),
              ElementsAre(EndsWith("/train")));
  EXPECT_THAT(Paths("cat {x}"), ElementsAre(EndsWith("/cat")));
}

TEST_F(ProgramTest, BehindAnInterpreterTheScriptCounts) {
  EXPECT_THAT(Paths("sh -e train.py --x={x}"),
              ElementsAre(EndsWith("/sh"), EndsWith("/train.py")));
}

TEST_F(ProgramTest, PartsOfTheShellAreNoFile) {
  EXPECT_THAT(Paths("[ {x} = 1 ] || nosuchprogram").size(), 1);
  EXPECT_THAT(Paths("nosuchprogram {x}"), IsEmpty());
  EXPECT_THAT(Paths(""), IsEmpty());
}

TEST_F(ProgramTest, TheFingerprintIsOfTheContents) {
  const auto before = ProgramFiles("./train {x}", {}, folder_);
  Write("train", "changed");
  const auto after = ProgramFiles("./train {x}", {}, folder_);
  EXPECT_NE((*before)[0].fingerprint(), (*after)[0].fingerprint());
  EXPECT_EQ((*before)[0].path(), (*after)[0].path());
}

TEST_F(ProgramTest, NamedFilesCountAndMustBeThere) {
  EXPECT_THAT(Paths("nosuchprogram {x}", {"train.py"}),
              ElementsAre(EndsWith("/train.py")));
  const auto missing = ProgramFiles("./train", {"nowhere.bin"}, folder_);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("nowhere.bin"));
}

}  // namespace
}  // namespace optrail::tuning
