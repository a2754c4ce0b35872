#include "ops/device/toolchain.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Toolchain, ReadsTheNameOfTheSystem) {
  EXPECT_EQ(OsName("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(OsName("PRETTY_NAME=Plain\n"), "Plain");
  EXPECT_EQ(OsName("NAME=x\n"), "");
}

TEST(Toolchain, DescribesThisBuild) {
  const proto::Toolchain toolchain = BuildToolchain();
  EXPECT_THAT(toolchain.compiler(),
              AnyOf(StartsWith("g++ "), StartsWith("clang++ ")));
  EXPECT_THAT(toolchain.compilation_mode(), AnyOf("opt", "dbg", "fastbuild"));
  EXPECT_THAT(toolchain.flags(), HasSubstr("-std=c++17"));
  EXPECT_NE(toolchain.os_kernel(), "");
}

}  // namespace
}  // namespace optrail::ops
