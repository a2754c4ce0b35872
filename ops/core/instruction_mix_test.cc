#include "ops/core/instruction_mix.h"

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr char kText[] = R"(
0000000000001120 <k>:
    1120:	test   %rdx,%rdx
    1123:	jle    1170 <k+0x50>
    1140:	vmovups (%rdi,%rbx,4),%zmm1
    1145:	vmovups 0x40(%rsp),%zmm2
    114b:	vsqrtps %zmm1,%zmm0
    114f:	vdivps %ymm3,%ymm0,%ymm0
    1153:	vfmadd132ps 0x80(%rsp),%zmm0,%zmm1
    1158:	vcvtps2pd %xmm1,%ymm4
    1160:	cmp    %rbx,%rdx
    1163:	jne    1140 <k+0x20>
    1165:	vaddss %xmm1,%xmm0,%xmm0
    116a:	inc    %rbx
    116c:	jne    1165 <k+0x45>
    1170:	jmp    1120 <k>
)";

TEST(LoopFactsTest, CountsTheInnermostLoopWithTheMostArithmetic) {
  const auto facts = LoopFacts(kText);
  EXPECT_EQ(facts.at("loop_instructions"), 8);
  EXPECT_EQ(facts.at("loop_vector_fp"), 3);
  EXPECT_EQ(facts.at("loop_scalar_fp"), 0);
  EXPECT_EQ(facts.at("loop_vector_bits"), (512 + 256 + 512) / 3);
  EXPECT_EQ(facts.at("loop_stack_accesses"), 2);
  EXPECT_EQ(facts.at("loop_slow"), 2);
  EXPECT_EQ(facts.at("loop_conversions"), 1);
}

TEST(LoopFactsTest, TheUnrolledRemainderOfAVectorLoopIsNotTheMainLoop) {
  const auto facts = LoopFacts(R"(
    1140:	vmulps (%rdi,%rbx,4),%zmm1,%zmm2
    1145:	vaddps %zmm2,%zmm0,%zmm0
    1149:	jne    1140 <k+0x20>
    1150:	vmulss (%rdi),%xmm1,%xmm2
    1154:	vaddss %xmm2,%xmm0,%xmm0
    1158:	vmulss 4(%rdi),%xmm1,%xmm2
    115c:	vaddss %xmm2,%xmm0,%xmm0
    1160:	jne    1150 <k+0x30>
)");
  EXPECT_EQ(facts.at("loop_vector_fp"), 2);
  EXPECT_EQ(facts.at("loop_scalar_fp"), 0);
}

TEST(LoopFactsTest, ALoopAroundItMayBeginAtTheSameInstruction) {
  const auto facts = LoopFacts(R"(
    1140:	vmulps (%rdi,%rbx,4),%ymm1,%ymm2
    1145:	jne    1140 <k+0x20>
    1150:	vmulss (%rdi),%xmm1,%xmm2
    1154:	vaddss %xmm2,%xmm0,%xmm0
    1160:	jne    1140 <k+0x20>
)");
  EXPECT_EQ(facts.at("loop_instructions"), 2);
  EXPECT_EQ(facts.at("loop_scalar_fp"), 0);
}

// Compilers move what is seldom needed behind the function.
TEST(LoopFactsTest, ABlockThatJumpsBackIsNoLoop) {
  const auto facts = LoopFacts(R"(
    1120:	jle    1170 <k+0x50>
    1140:	vmulps (%rdi,%rbx,4),%xmm1,%xmm2
    1145:	jne    1140 <k+0x20>
    1150:	vaddss %xmm2,%xmm0,%xmm0
    1154:	vaddss %xmm2,%xmm0,%xmm0
    1158:	vaddss %xmm2,%xmm0,%xmm0
    115c:	vaddss %xmm2,%xmm0,%xmm0
    1160:	vaddss %xmm2,%xmm0,%xmm0
    1164:	ret
    1170:	vxorps %xmm2,%xmm2,%xmm2
    1174:	jmp    1150 <k+0x30>
)");
  EXPECT_EQ(facts.at("loop_vector_fp"), 1);
  EXPECT_EQ(facts.at("loop_scalar_fp"), 0);
}

TEST(LoopFactsTest, ALoopThatTakesALockIsNotItsSpinLoop) {
  const auto facts = LoopFacts(R"(
    1140:	vmulps (%rdi,%rbx,4),%zmm1,%zmm2
    1145:	mov    %ecx,%edx
    1147:	xchg   %dl,(%rsi)
    114a:	test   %dl,%dl
    114c:	jne    1145 <k+0x25>
    1150:	vmaxps %zmm2,%zmm0,%zmm0
    1154:	movb   $0x0,(%rsi)
    1158:	jne    1140 <k+0x20>
)");
  EXPECT_EQ(facts.at("loop_vector_fp"), 2);
  EXPECT_EQ(facts.at("loop_locked"), 1);
}

TEST(LoopFactsTest, TextWithoutLoopsTellsNothing) {
  EXPECT_TRUE(LoopFacts("").empty());
  EXPECT_TRUE(LoopFacts("no disassembly\n  12: nothing").empty());
}

}  // namespace
}  // namespace optrail::ops
