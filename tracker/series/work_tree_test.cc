#include "tracker/series/work_tree.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WorkTreeTest : public ::testing::Test {
 protected:
  WorkTreeTest()
      : top_(JoinPath(
            ::testing::TempDir(),
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Write("src/a.cc", "int main() {}\n");
    const std::string git = absl::StrCat("git -C '", top_, "' ");
    const std::string commit =
        absl::StrCat(git, "init -q && ", git, "add . && ", git,
                     "-c user.name=x -c user.email=x@y commit -q -m one");
    EXPECT_EQ(std::system(commit.c_str()), 0);
  }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(top_, name);
    EXPECT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  }

  WorkTreeChanges Changes() {
    const auto facts = FindGitFacts(top_);
    EXPECT_TRUE(facts.ok()) << facts.status();
    text_ = UncommittedText(*facts);
    return FindWorkTreeChanges(*facts);
  }

  const std::string top_;
  std::string text_;
};

TEST_F(WorkTreeTest, ResultsAndProductsAreNoChanges) {
  EXPECT_FALSE(Changes().any());
  Write("run1.json", "{}");
  Write("bench", "\177ELF and more");
  Write("build/CMakeCache.txt", "");
  Write("build/CMakeFiles/CompilerIdC.c", "int main;");
  Write("out/results.csv", "a,b");
  EXPECT_FALSE(Changes().any());
  EXPECT_EQ(text_, "");
}

TEST_F(WorkTreeTest, SourcesAndEditedFilesAreNamedByTheirKind) {
  Write("new/b.cc", "int b;");
  EXPECT_THAT(Changes().untracked, ElementsAre("new/"));
  EXPECT_THAT(text_, HasSubstr("has 1 untracked source (new/), which commit "));
  Write("CMakeLists.txt", "project(x)");
  Write("src/a.cc", "int main() { return 1; }\n");
  const WorkTreeChanges changes = Changes();
  EXPECT_THAT(changes.edited, ElementsAre("src/a.cc"));
  EXPECT_THAT(changes.untracked, ElementsAre("CMakeLists.txt", "new/"));
  EXPECT_THAT(text_, HasSubstr("has 1 edited file (src/a.cc) and 2 untracked "
                               "sources (CMakeLists.txt, ...), which commit "));
}

}  // namespace
}  // namespace optrail::tracker
