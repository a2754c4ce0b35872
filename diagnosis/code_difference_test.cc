#include "diagnosis/code_difference.h"

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kVectors[] = R"(
0000000000001120 <scale(float*, long)>:
    1120:	test   %rsi,%rsi
    1123:	jle    1140 <scale(float*, long)+0x20>
    1125:	vmulps (%rdi,%rax,1),%zmm0,%zmm1
    112a:	vmovups %zmm1,(%rdi,%rax,1)
    1130:	add    $0x40,%rax
    1134:	cmp    %rax,%rsi
    1137:	jne    1125 <scale(float*, long)+0x5>
    1140:	ret
0000000000001150 <other()>:
    1150:	lea    0xec4(%rip),%rax        # 2020 <_IO_stdin_used>
    1157:	ret
)";

// `other` moved, and its data.
constexpr char kScalar[] = R"(
0000000000001120 <scale(float*, long)>:
    1120:	test   %rsi,%rsi
    1123:	jle    1140 <scale(float*, long)+0x20>
    1125:	vmulss (%rdi,%rax,4),%xmm0,%xmm1
    112a:	vmovss %xmm1,(%rdi,%rax,4)
    1130:	inc    %rax
    1134:	cmp    %rax,%rsi
    1137:	jne    1125 <scale(float*, long)+0x5>
    1140:	ret
0000000000001170 <other()>:
    1170:	lea    0xfc4(%rip),%rax        # 2140 <_IO_stdin_used>
    1177:	nopw   0x0(%rax,%rax,1)
    1177:	ret
)";

constexpr char kSpills[] = R"(
0000000000001120 <scale(float*, long) [clone .constprop.0]>:
    1120:	test   %rsi,%rsi
    1123:	jle    1140 <scale(float*, long)+0x20>
    1125:	vmulps (%rdi,%rax,1),%zmm0,%zmm1
    1127:	vmovaps %zmm1,0x40(%rsp)
    1128:	vmovaps 0x40(%rsp),%zmm1
    112a:	vmovups %zmm1,(%rdi,%rax,1)
    1130:	add    $0x40,%rax
    1134:	cmp    %rax,%rsi
    1137:	jne    1125 <scale(float*, long)+0x5>
    1140:	ret
0000000000001150 <other()>:
    1150:	lea    0xec4(%rip),%rax        # 2020 <_IO_stdin_used>
    1157:	ret
)";

constexpr char kDiff[] = R"(diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -3 +3 @@
-one
+two
diff --git a/scale.cc b/scale.cc
--- a/scale.cc
+++ b/scale.cc
@@ -10,0 +11 @@ namespace {
+// A comment.
@@ -14 +15 @@ void scale(float* x, long n) {
-  for (long i = 0; i < n; ++i) x[i] *= 2;
+  for (volatile long i = 0; i < n; ++i) x[i] *= 2;
)";

Code CodeOf(const char* text) {
  Code code;
  AddFunctions(text, &code);
  return code;
}

TEST(DifferenceLinesTest, NamesTheFunctionTheLossAndTheLineOfTheSource) {
  EXPECT_THAT(
      DifferenceLines(CodeOf(kVectors), CodeOf(kScalar), kDiff),
      ElementsAre(
          "code: scale(float*, long): vectors lost: 512 -> 32 bits an "
          "operation; main loop: vector operations 1 -> 0, bits of a vector "
          "512 -> 0, scalar operations 0 -> 1, bytes read and written 128 -> 8",
          "source: scale.cc:15: \"for (long i = 0; i < n; ++i) x[i] *= 2;\" -> "
          "\"for (volatile long i = 0; i < n; ++i) x[i] *= 2;\"",
          "source: README.md:3: \"one\" -> \"two\""));
}

TEST(DifferenceLinesTest, ClonesAreTheFunctionAndStackAccessesAreSpills) {
  EXPECT_THAT(DifferenceLines(CodeOf(kVectors), CodeOf(kSpills), ""),
              ElementsAre("code: scale(float*, long): values spilled to the "
                          "stack; main loop: instructions 5 -> 7, stack "
                          "accesses 0 -> 2"));
}

TEST(DifferenceLinesTest, WhatOnlyMovedIsTheSame) {
  const Code code = CodeOf(kVectors);
  EXPECT_THAT(DifferenceLines(code, code, kDiff),
              ElementsAre(StartsWith("source: scale.cc:15: "),
                          StartsWith("source: README.md:3: "),
                          HasSubstr("every function is the same")));
}

TEST(DifferenceLinesTest, ASettingOfTheBuildComesFirst) {
  const auto lines = DifferenceLines(CodeOf(kVectors), CodeOf(kScalar), R"(
diff --git a/CMakeLists.txt b/CMakeLists.txt
--- a/CMakeLists.txt
+++ b/CMakeLists.txt
@@ -2 +2 @@
-set(CMAKE_CXX_FLAGS "-O3")
+set(CMAKE_CXX_FLAGS "-O1")
)");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0],
            "build: CMakeLists.txt:2: \"set(CMAKE_CXX_FLAGS \"-O3\")\" -> "
            "\"set(CMAKE_CXX_FLAGS \"-O1\")\"");
}

TEST(DifferenceLinesTest, LocalLoadsOfAKernelAreSpills) {
  constexpr char kBefore[] = R"(
		Function : _Z3addPf
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;      /* 0x00ff017b82 */
                                                               /* 0x000fe20000 */
        /*0010*/                   STG.E desc[UR4][R2.64], R5 ; /* 0x0000000502 */
)";
  const std::string after =
      std::string(kBefore) +
      "        /*0020*/                   LDL R0, [R1] ;      /* 0x00 */\n";
  Code a, b;
  AddKernels(kBefore, &a);
  AddKernels(after, &b);
  EXPECT_THAT(DifferenceLines(a, b, ""),
              ElementsAre("SASS: _Z3addPf: registers spilled to local memory; "
                          "instructions 2 -> 3, local loads 0 -> 1"));
}

TEST(ReadCodeTest, SaysWhatWasNotRead) {
  const Code code = ReadCode({"/no/such/program"});
  EXPECT_THAT(code.functions, IsEmpty());
  ASSERT_EQ(code.unsupported.size(), 1);
  EXPECT_THAT(code.unsupported[0], HasSubstr("unsupported here"));
}

TEST(ProgramsBelowTest, FindsProgramsByTheirFirstBytes) {
  const std::string folder = ::testing::TempDir() + "/programs";
  const std::string head("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16);
  ASSERT_TRUE(CreateDirectories(folder + "/.git").ok());
  for (const auto& [name, type] : {std::pair<const char*, char>("object.o", 1),
                                   {"program", 2},
                                   {"library.so", 3},
                                   {".git/program", 2}}) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, name),
                                    head + type + std::string(1, '\0'))
                    .ok());
  }
  ASSERT_TRUE(WriteFileAtomically(folder + "/text", "no program").ok());
  EXPECT_THAT(ProgramsBelow(folder),
              ElementsAre(folder + "/library.so", folder + "/program"));
}

}  // namespace
}  // namespace optrail::diagnosis
