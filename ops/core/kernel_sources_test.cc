#include "ops/core/kernel_sources.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool IsLeftOut(absl::string_view path) {
  return absl::StartsWith(path, "ops/core/") || path == "ops/sum/sum_knobs.h";
}

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

// Two backends of an operator: cpu reaches everything through two headers,
// cuda a file that is embedded and its header.
Sources Operator() {
  return {
      {"ops/core/operator.h", "#include \"ops/core/deep.h\"\n"},
      {"ops/lib/loops.h", "constexpr int kLoops = 1;\n"},
      {"ops/lib/loops.cc",
       "#include \"ops/lib/loops.h\"\n#include \"ops/lib/deepest-inl.h\"\n"
       "int Loops() { return kLoops + 8; }\n"},
      {"ops/lib/deepest-inl.h", "constexpr int kDeepest = 2;\n"},
      {"ops/lib/elements.cuh", "constexpr int kElements = 3;\n"},
      {"ops/sum/line.h",
       "#include \"ops/lib/loops.h\"\nconst int kLine = 4;\n"},
      {"ops/sum/sum_cpu.cc",
       "#include \"ops/core/operator.h\"\n#include \"ops/sum/line.h\"\n"
       "#include \"ops/sum/sum_knobs.h\"\nint Cpu() { return 5; }\n"},
      {"ops/sum/sum_cuda.cc", "const int kCuda = 6;\n"},
      {"ops/sum/sum_cuda.cu",
       "#include \"elements.cuh\"\n__global__ void Sum() { f(7); }\n"},
  };
}
const std::vector<std::string>& Cpu() {
  static const auto* const roots =
      new std::vector<std::string>{"ops/sum/sum_cpu.cc"};
  return *roots;
}
const std::vector<std::string>& Cuda() {
  static const auto* const roots = new std::vector<std::string>{
      "ops/sum/sum_cuda.cc", "ops/sum/sum_cuda.cu"};
  return *roots;
}

std::string Id(const Sources& sources, const std::vector<std::string>& roots) {
  const auto paths = FilesOfKernel(sources, roots, IsLeftOut);
  EXPECT_TRUE(paths.ok()) << paths.status();
  if (!paths.ok()) return "";
  return KernelSourcesHash(1, "-O2", CodeOfFiles(sources, *paths));
}

TEST(KernelSourcesTest, TheWalkFindsHeadersAndTheSourcesBesideThem) {
  EXPECT_THAT(
      *FilesOfKernel(Operator(), Cpu(), IsLeftOut),
      ElementsAre("ops/lib/deepest-inl.h", "ops/lib/loops.cc",
                  "ops/lib/loops.h", "ops/sum/line.h", "ops/sum/sum_cpu.cc"));
  EXPECT_THAT(*FilesOfKernel(Operator(), Cuda(), IsLeftOut),
              ElementsAre("ops/lib/elements.cuh", "ops/sum/sum_cuda.cc",
                          "ops/sum/sum_cuda.cu"));
}

TEST(KernelSourcesTest, ACommentInAnyFileChangesNoId) {
  const Sources before = Operator();
  for (const auto& [path, contents] : before) {
    Sources after = before;
    after[path] = "// A sentence.\n" + contents + "/* and\n another */\n\n";
    EXPECT_EQ(Id(after, Cpu()), Id(before, Cpu())) << path;
    EXPECT_EQ(Id(after, Cuda()), Id(before, Cuda())) << path;
  }
}

TEST(KernelSourcesTest, AConstantInEachFileChangesTheIdsOfItsBackendsAlone) {
  const Sources before = Operator();
  int changed = 0;
  for (const auto& [roots, others] :
       {std::make_pair(Cpu(), Cuda()), std::make_pair(Cuda(), Cpu())}) {
    const auto paths = FilesOfKernel(before, roots, IsLeftOut);
    ASSERT_TRUE(paths.ok()) << paths.status();
    for (const std::string& path : *paths) {
      Sources after = before;
      for (char digit = '1'; digit <= '8'; ++digit) {
        after[path] = absl::StrReplaceAll(
            after[path], {{absl::StrCat(std::string(1, digit), ";"), "9;"},
                          {absl::StrCat(std::string(1, digit), ")"), "9)"}});
      }
      ASSERT_NE(after[path], before.at(path));
      EXPECT_NE(Id(after, roots), Id(before, roots)) << path;
      EXPECT_EQ(Id(after, others), Id(before, others)) << path;
      ++changed;
    }
  }
  EXPECT_EQ(changed, 8);
}

TEST(KernelSourcesTest, WhatIsLeftOutChangesNoId) {
  Sources after = Operator();
  after["ops/core/operator.h"] = "int x;\n";
  EXPECT_EQ(Id(after, Cpu()), Id(Operator(), Cpu()));
}

TEST(KernelSourcesTest, FilesThatIncludeEachOtherEnd) {
  const Sources sources = {{"ops/a/x.h", "#include \"ops/a/y.h\"\n"},
                           {"ops/a/y.h", "#include \"../a/x.h\"\n"}};
  EXPECT_THAT(*FilesOfKernel(sources, {"ops/a/x.h"}, IsLeftOut),
              ElementsAre("ops/a/x.h", "ops/a/y.h"));
}

TEST(KernelSourcesTest, AHeaderThatNoDependencyDeclaresIsRefused) {
  Sources sources = Operator();
  sources.erase("ops/lib/deepest-inl.h");
  const absl::Status status = FilesOfKernel(sources, Cpu(), IsLeftOut).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ops/lib/loops.cc:2: includes "
                        "\"ops/lib/deepest-inl.h\", which no dependency"));
}

TEST(KernelSourcesTest, AFlatNameOfTwoFilesIsRefused) {
  Sources sources = Operator();
  sources["ops/other/elements.cuh"] = "";
  const absl::Status status =
      FilesOfKernel(sources, Cuda(), IsLeftOut).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ops/sum/sum_cuda.cu:1: \"elements.cuh\" may be "
                        "ops/lib/elements.cuh or ops/other/elements.cuh"));
}

TEST(KernelSourcesTest, AnIncludePathOfALibraryIsFollowed) {
  const Sources sources = {{"far/include/far/x.h", "int x;\n"},
                           {"near/include/far/x.h", "int y;\n"},
                           {"other/xx.h", "int z;\n"},
                           {"k/k_cpu.cc", "#include <far/x.h>\n"}};
  // Which it is only the compiler knows: both.
  EXPECT_THAT(
      *FilesOfKernel(sources, {"k/k_cpu.cc"}, IsLeftOut),
      ElementsAre("far/include/far/x.h", "k/k_cpu.cc", "near/include/far/x.h"));
}

TEST(KernelSourcesTest, ARootThatIsMissingIsNamed) {
  EXPECT_THAT(
      std::string(FilesOfKernel(Operator(), {"ops/sum/none.cc"}, IsLeftOut)
                      .status()
                      .message()),
      HasSubstr("ops/sum/none.cc"));
}

TEST(KernelSourcesTest, AMoveToAnotherFolderChangesNothing) {
  const std::string moved = absl::StrReplaceAll(
      kHeader, {{"OPTRAIL_OPS_MATMUL_TILE_H_", "OPTRAIL_OPS_LIB_TILE_H_"},
                {"#include \"ops/core/operator.h\"\n"
                 "#include \"ops/matmul/block.h\"",
                 // Sorted by its new path.
                 "#include \"aaa/matmul/block.h\"\n"
                 "#include \"ops/core/operator.h\""}});
  ASSERT_NE(moved, kHeader);
  EXPECT_EQ(CodeOf(moved), CodeOf(kHeader));
  EXPECT_EQ(CodeOf("#define HWY_TARGET_INCLUDE \"ops/a/x.cc\""),
            CodeOf("#define HWY_TARGET_INCLUDE \"ops/b/c/x.cc\""));
  EXPECT_EQ(KernelSourcesHash(1, "", {"a", "b"}),
            KernelSourcesHash(1, "", {"b", "a"}));
}

TEST(KernelSourcesTest, WhatChangesTheCodeChangesTheHash) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"TILE 4", "TILE 8"},
           {"\"ops/matmul/data\"", "\"ops/lib/data\""},  // no directive
           {"ops/matmul/block.h", "ops/matmul/other.h"},
           {"<cstdint>", "<cstddef>"}}) {
    const std::string changed = absl::StrReplaceAll(kHeader, {{from, to}});
    ASSERT_NE(changed, kHeader) << from;
    EXPECT_NE(CodeOf(changed), CodeOf(kHeader)) << from;
  }
  const std::vector<std::string> code = {"a"};
  EXPECT_NE(KernelSourcesHash(2, "-O2", code),
            KernelSourcesHash(1, "-O2", code));
  EXPECT_NE(KernelSourcesHash(1, "-O3", code),
            KernelSourcesHash(1, "-O2", code));
  EXPECT_NE(KernelSourcesHash(1, "-O2", {}), KernelSourcesHash(1, "-O2", code));
  // Contents are told apart, however they are cut.
  EXPECT_NE(KernelSourcesHash(1, "", {"ab", "c"}),
            KernelSourcesHash(1, "", {"a", "bc"}));
}

TEST(KernelSourcesTest, OnlyAGuardIsTakenForOne) {
  EXPECT_EQ(CodeOf("#ifndef A\n#define B\n#endif  // A"),
            "#ifndef A\n#define B\n#endif");
  EXPECT_EQ(CodeOf("#ifndef A\n#define A\nint x;\n#ifdef B\n#endif\n"
                   "#endif  // A"),
            "int x ;\n#ifdef B\n#endif\n#endif");
  EXPECT_EQ(CodeOf("#ifndef A\n#define A 4\n#endif"),
            "#ifndef A\n#define A 4\n#endif");
  EXPECT_EQ(CodeOf(""), "");
}

TEST(KernelSourcesTest, IncludesInCommentsAndTextAreNone) {
  EXPECT_THAT(IncludesOf("// #include \"a.h\"\n/*\n#include \"b.h\"\n*/\n"
                         "const char* s = R\"(\n#include \"c.h\"\n)\";\n"
                         "  #  include \"d.h\" // e\n#include <f/g.h>\n"
                         "#include HWY_TARGET_INCLUDE\n"),
              ElementsAre("d.h", "f/g.h"));
}

}  // namespace
}  // namespace optrail::ops
