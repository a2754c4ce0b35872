#include "tuning/command/program.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/file/file.h"
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
    const auto program = FindProgram(command, named, folder_);
    EXPECT_TRUE(program.ok()) << program.status();
    std::vector<std::string> paths;
    for (const auto& file : program->files) paths.push_back(file.path());
    return paths;
  }
  std::vector<std::string> LeftOut(const std::string& command,
                                   const std::vector<std::string>& named = {}) {
    return FindProgram(command, named, folder_)->left_out;
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

TEST_F(ProgramTest, WhatOnlyStartsProgramsIsNoneOfThem) {
  for (const char* command :
       {"time ./train {x}", "nice -n 5 ./train {x}", "/usr/bin/env ./train",
        "taskset -c 0,2-3 ./train", "A=1 timeout -s 9 10s nice ./train",
        "cd . && ./train", "ulimit -n 100; ./train", "\"./train\" {x}",
        "(./train {x})", "./train 2>&1", "env -i A=1 ./train"}) {
    EXPECT_THAT(Paths(command), ElementsAre(EndsWith("/train"))) << command;
  }
}

TEST_F(ProgramTest, ScriptsAreFoundBehindFlagsAndInsideCommandLines) {
  for (const char* command :
       {"bash -c 'sh train.py {x}'", "sh -c \"sh train.py {x}\" {x}",
        "sh -W ignore train.py {x}", "nice sh train.py", "sh -m train",
        "true && sh train.py {x}"}) {
    EXPECT_THAT(Paths(command), testing::Contains(EndsWith("/train.py")))
        << command;
  }
  ASSERT_TRUE(CreateDirectories(JoinPath(folder_, "sub")).ok());
  Write("sub/train.py", "three");
  EXPECT_THAT(Paths("cd sub && sh train.py"),
              ElementsAre(EndsWith("/sh"), EndsWith("/sub/train.py")));
}

TEST_F(ProgramTest, WhatTheCommandMayHaveMadeCountsWhereItIsNamed) {
  EXPECT_THAT(LeftOut("true -s OPT={x} && ./train"), ElementsAre("./train"));
  EXPECT_THAT(LeftOut("true && ./train", {"./train"}), IsEmpty());
  EXPECT_THAT(LeftOut("sh -e gen {x} > train.py && sh train.py"),
              ElementsAre("train.py"));
  EXPECT_THAT(Paths("true {x}.c -o train.py && sh train.py").size(), 1);
  EXPECT_THAT(LeftOut("./train {x} > log"), IsEmpty());
}

TEST_F(ProgramTest, PartsOfTheShellAreNoFile) {
  EXPECT_THAT(Paths("[ {x} = 1 ] || nosuchprogram").size(), 1);
  EXPECT_THAT(Paths("nosuchprogram {x}"), IsEmpty());
  EXPECT_THAT(Paths(""), IsEmpty());
}

TEST_F(ProgramTest, TheFingerprintIsOfTheContents) {
  const auto before = FindProgram("./train {x}", {}, folder_);
  Write("train", "changed");
  const auto after = FindProgram("./train {x}", {}, folder_);
  EXPECT_NE(before->files[0].fingerprint(), after->files[0].fingerprint());
  EXPECT_EQ(before->files[0].path(), after->files[0].path());
}

TEST_F(ProgramTest, NamedFilesCountAndMustBeThere) {
  EXPECT_THAT(Paths("nosuchprogram {x}", {"train.py"}),
              ElementsAre(EndsWith("/train.py")));
  const auto missing = FindProgram("./train", {"nowhere.bin"}, folder_);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("nowhere.bin"));
}

}  // namespace
}  // namespace optrail::tuning
