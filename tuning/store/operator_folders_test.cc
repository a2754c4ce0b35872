#include "tuning/store/operator_folders.h"

#include <unistd.h>

#include <cstdlib>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OperatorsDeclaredInTest, ReadsTheNameOfEachCallAndNothingElse) {
  EXPECT_THAT(OperatorsDeclaredIn(R"bzl(
load("@optrail//ops:operator.bzl", "operator")

# operator(name = "in_a_comment")
operator(
    srcs = glob(["*.cc"], exclude = [name for name in ["x"]]),
    # its
    name  =  'soft)max',
    hdrs = ["a.h"],
)
cc_library(name = "lib", srcs = ["operator(name = 'in_a_string')"])
"""
operator(name = "in_a_docstring")
"""
operator(name="second",srcs=[])
elementwise_operator(
    name = "of_a_macro_that_calls_it",
    cuda = True,
)
operators(name = "another_macro")
operator_test(name = "a_test")
[operator(name = n) for n in NAMES]
)bzl"),
              ElementsAre("soft)max", "second", "of_a_macro_that_calls_it"));
  EXPECT_THAT(OperatorsDeclaredIn("operator(name = \"cut off"),
              ElementsAre("cut off"));
  EXPECT_THAT(OperatorsDeclaredIn("operator(name"), IsEmpty());
  EXPECT_THAT(OperatorsDeclaredIn(")]}\\"), IsEmpty());
}

class OperatorFoldersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/tree_XXXXXX";
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
  }
  void Write(const std::string& path, const std::string& text) {
    const std::string full = JoinPath(root_, path);
    ASSERT_TRUE(CreateDirectories(DirectoryOf(full)).ok());
    ASSERT_TRUE(WriteFileAtomically(full, text).ok());
  }
  std::string root_;
};

TEST_F(OperatorFoldersTest, FindsOperatorsWhateverTheirFoldersAreCalled) {
  Write("kernels/fast/BUILD", "operator(name = \"gelu\")");
  Write("BUILD.bazel", "operator(name = \"at_the_root\")");
  Write("bazel-out/kernels/BUILD", "operator(name = \"gelu\")");
  Write(".git/BUILD", "operator(name = \"gelu\")");
  // A loop of links, as bazel makes them.
  ASSERT_EQ(symlink(root_.c_str(), JoinPath(root_, "loop").c_str()), 0);
  const auto folders = OperatorFolders::Find(root_);
  ASSERT_TRUE(folders.ok()) << folders.status();
  EXPECT_EQ(*folders->FolderOf("gelu"), JoinPath(root_, "kernels/fast"));
  EXPECT_EQ(*folders->FolderOf("at_the_root"), root_);
  EXPECT_THAT(std::string(folders->FolderOf("glu").status().message()),
              HasSubstr("\"glu\"; there are: at_the_root, gelu"));
}

TEST_F(OperatorFoldersTest, TwoOfAName) {
  Write("a/BUILD", "operator(name = \"gelu\")");
  Write("b/BUILD", "operator(name = \"gelu\")");
  const auto folders = OperatorFolders::Find(root_);
  ASSERT_TRUE(folders.ok()) << folders.status();
  EXPECT_THAT(std::string(folders->FolderOf("gelu").status().message()),
              HasSubstr("several folders"));
  EXPECT_FALSE(OperatorFolders::Find(JoinPath(root_, "none")).ok());
}

}  // namespace
}  // namespace optrail::tuning
