#include "ops/core/former_kernel_sources.h"

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr char kHeader[] = R"(#ifndef OPTRAIL_OPS_MATMUL_TILE_H_
#define OPTRAIL_OPS_MATMUL_TILE_H_

// Says what it is.
#include <cstdint>

#include "ops/core/operator.h"
#include "ops/matmul/block.h"

#define TILE 4
inline const char* Path() { return "ops/matmul/data"; }

#endif  // OPTRAIL_OPS_MATMUL_TILE_H_
)";

constexpr char kSource[] = R"(#include "ops/matmul/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/tile.cc"
#include "hwy/foreach_target.h"
void F() {}
)";

std::string Hash(const std::string& header, const std::string& source) {
  return FormerKernelSourcesHash(1, "-O2", {header, source});
}

TEST(FormerKernelSourcesTest, AMoveToAnotherFolderChangesNothing) {
  const std::string moved_header = absl::StrReplaceAll(
      kHeader, {{"OPTRAIL_OPS_MATMUL_TILE_H_", "OPTRAIL_OPS_LIB_TILE_H_"},
                {"#include \"ops/core/operator.h\"\n"
                 "#include \"ops/matmul/block.h\"",
                 // Sorted by its new path.
                 "#include \"aaa/matmul/block.h\"\n"
                 "#include \"ops/core/operator.h\""}});
  const std::string moved_source =
      absl::StrReplaceAll(kSource, {{"ops/matmul/", "ops/matmul/cpu/"}});
  ASSERT_NE(moved_header, kHeader);
  ASSERT_NE(moved_source, kSource);
  EXPECT_EQ(Hash(moved_header, moved_source), Hash(kHeader, kSource));
  EXPECT_EQ(FormerKernelSourcesHash(1, "-O2", {kSource, kHeader}),
            Hash(kHeader, kSource));
}

TEST(FormerKernelSourcesTest, WhatChangesTheCodeChangesTheHash) {
  const std::string hash = Hash(kHeader, kSource);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"TILE 4", "TILE 8"},
           {"\"ops/matmul/data\"", "\"ops/lib/data\""},  // no preprocessor line
           {"ops/matmul/block.h", "ops/matmul/other.h"},
           {"<cstdint>", "<cstddef>"}}) {
    const std::string changed = absl::StrReplaceAll(kHeader, {{from, to}});
    ASSERT_NE(changed, kHeader) << from;
    EXPECT_NE(Hash(changed, kSource), hash) << from;
  }
  EXPECT_NE(FormerKernelSourcesHash(2, "-O2", {kHeader, kSource}), hash);
  EXPECT_NE(FormerKernelSourcesHash(1, "-O3", {kHeader, kSource}), hash);
  EXPECT_NE(FormerKernelSourcesHash(1, "-O2", {kHeader}), hash);
}

TEST(FormerKernelSourcesTest, OnlyAGuardIsTakenForOne) {
  // The second line defines something else: a condition, not a guard.
  EXPECT_EQ(WithoutPlaces("#ifndef A\n#define B\n#endif  // A"),
            "#ifndef A\n#define B\n#endif  // A");
  EXPECT_EQ(WithoutPlaces("#ifndef A\n#define A\nint x;\n#ifdef B\n#endif\n"
                          "#endif  // A"),
            "int x;\n#ifdef B\n#endif");
  EXPECT_EQ(WithoutPlaces(""), "");
}

// Contents are told apart, however they are cut.
TEST(FormerKernelSourcesTest, TextThatMovesBetweenFilesIsAChange) {
  EXPECT_NE(FormerKernelSourcesHash(1, "", {"ab", "c"}),
            FormerKernelSourcesHash(1, "", {"a", "bc"}));
}

TEST(FormerKernelSourcesTest, TheTableIsReadByOperatorAndBackend) {
  constexpr char kTable[] =
      "# comment\n"
      "matmul cpu own\n"
      "  ops/matmul/a.cc\n"
      "  ops/matmul/a.cc\n"
      "\n"
      "sum cpu\n"
      "  ops/sum/b.cc\n";
  const std::vector<std::string> twice = {"ops/matmul/a.cc", "ops/matmul/a.cc"};
  EXPECT_EQ(FormerFilesOf(kTable, "matmul", "cpu"), twice);
  EXPECT_EQ(FormerFilesOf(kTable, "matmul", "own"), twice);
  EXPECT_EQ(FormerFilesOf(kTable, "sum", "cpu"),
            std::vector<std::string>{"ops/sum/b.cc"});
  EXPECT_TRUE(FormerFilesOf(kTable, "sum", "own").empty());
  EXPECT_TRUE(FormerFilesOf(kTable, "matmul", "").empty());
}

}  // namespace
}  // namespace optrail::ops
