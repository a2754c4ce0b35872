#include "ops/device/cuda/ablation.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/device/cuda/nvrtc.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Ablated(const std::string& line, Ablation ablation) {
  const auto ablated = Ablate(line, ablation);
  return ablated.ok() ? *ablated : std::string(ablated.status().message());
}

TEST(AblateTest, NothingTakenAwayIsTheSame) {
  EXPECT_EQ(Ablated("ld.global.f32 %f1, [%rd1];", Ablation::kNone),
            "ld.global.f32 %f1, [%rd1];");
}

TEST(AblateTest, LanesOfAWarpShareASegment) {
  const std::string code =
      Ablated("\t@%p1 ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd5+-16];",
              Ablation::kCoalesced);
  EXPECT_THAT(code, HasSubstr("vote.sync.ballot.b32 %ob, %p1"));
  EXPECT_THAT(code, HasSubstr("add.s64 %oa, %rd5, -16;"));
  EXPECT_THAT(code, HasSubstr("and.b64 %oa, %oa, -512;"));
  EXPECT_THAT(
      code, HasSubstr("@%p1 ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%oa];"));
}

TEST(AblateTest, CopiesIntoSharedMemoryHaveAGlobalAddress) {
  const std::string code =
      Ablated("cp.async.cg.shared.global [%r1], [%rd2], 16;", Ablation::kNear);
  EXPECT_THAT(code, HasSubstr("add.s64 %oa, %rd2, 0;"));
  EXPECT_THAT(code, HasSubstr("cp.async.cg.shared.global [%r1], [%oa], 16;"));
}

TEST(AblateTest, BanksAreThoseOfTheLanes) {
  const std::string code = Ablated("st.volatile.shared.f32 [%r7+128], %f1;",
                                   Ablation::kConflictFree);
  EXPECT_THAT(code, HasSubstr("add.s32 %oa, %oa, 128;"));
  EXPECT_THAT(code, HasSubstr("st.volatile.shared.f32 [%oa], %f1;"));
}

TEST(AblateTest, WhatBlocksWaitForStaysWhereItIs) {
  // MeetAllBlocks (ops/lib/elements.cuh) loops until this counter is full.
  for (const char* line : {"ld.acquire.gpu.global.s32 %r1, [%rd2];",
                           "ld.volatile.global.u32 %r1, [%rd2];",
                           "ld.relaxed.gpu.global.u32 %r1, [%rd2+4];"}) {
    EXPECT_THAT(Ablated(line, Ablation::kNear),
                HasSubstr("has no loads from global memory"))
        << line;
  }
}

TEST(AblateTest, BulkCopiesStay) {
  // The last address is one of shared memory.
  EXPECT_THAT(Ablated("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
                      "[%rd1, {%r2, %r3}], [%r4];",
                      Ablation::kNear),
              HasSubstr("has no loads from global memory"));
}

TEST(AblateTest, AtomicsOfFloatsAreStoresAndTicketsStay) {
  EXPECT_EQ(
      Ablated("atom.global.add.f32 %f9, [%rd1], %f2;", Ablation::kPlainStores),
      "st.global.b32 [%rd1+0], %f2;\nmov.b32 %f9, %f2;");
  EXPECT_THAT(
      Ablated("atom.global.add.u32 %r9, [%rd1], %r2;", Ablation::kPlainStores),
      HasSubstr("has no atomic operations on floats"));
}

TEST(AblateTest, LocalArraysHaveOneElement) {
  EXPECT_THAT(Ablated("\t.local .align 16 .b8 \t__local_depot0[1024];\n"
                      "st.local.f32 [%rd4], %f1;",
                      Ablation::kNoLocalArrays),
              HasSubstr("st.local.f32 [__local_depot0], %f1;"));
}

TEST(AblateTest, WhatHasNoneOfItIsUnsupported) {
  for (const Ablation ablation :
       {Ablation::kCoalesced, Ablation::kNear, Ablation::kConflictFree,
        Ablation::kNoLocalArrays, Ablation::kAllRegisters}) {
    EXPECT_EQ(Ablate("add.s32 %r1, %r2, %r3;", ablation).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST(SplitAblationTest, TheCompilerDoesNotSeeIt) {
  const auto split =
      SplitAblation({"-arch=sm_90", AblationOption(Ablation::kNear), "-DA=1"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->compiler, testing::ElementsAre("-arch=sm_90", "-DA=1"));
  EXPECT_EQ(split->ablation, Ablation::kNear);
  EXPECT_FALSE(SplitAblation({"--optrail-ablation=all"}).ok());
}

TEST(FactsOfPtxTest, CountsStatements) {
  const auto facts = FactsOfPtx(
      "ld.volatile.global.u8 %rs1, [%rd1];\n"
      "@%p1 st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}, 1;\n");
  EXPECT_EQ(facts.at("global_accesses"), 2);
  EXPECT_EQ(facts.at("narrow_accesses"), 1);
  EXPECT_EQ(facts.at("tensor_instructions"), 1);
}

// NVRTC's PTX is what all this is about. Without NVRTC there is none.
TEST(AblateTest, StatementsOfTheCompilerAreUnderstood) {
  const auto nvrtc = Nvrtc::Get();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  constexpr char kSource[] = R"(
extern "C" __global__ void __launch_bounds__(256, 8)
    kernel(const float* x, float* y, int n) {
  __shared__ float tile[32][32];
  float history[64];
  for (int i = 0; i < n; ++i) history[i & 63] = x[threadIdx.x * n + i];
  tile[threadIdx.x % 32][threadIdx.x / 32] = history[n & 63];
  __syncthreads();
  atomicAdd(y + n, tile[threadIdx.x / 32][threadIdx.x % 32]);
})";
  const auto cubin =
      (*nvrtc)->Compile(kSource, "kernel.cu", {"-arch=sm_90", "-std=c++17"});
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  for (const Ablation ablation :
       {Ablation::kCoalesced, Ablation::kNear, Ablation::kConflictFree,
        Ablation::kPlainStores, Ablation::kNoLocalArrays,
        Ablation::kAllRegisters}) {
    const auto ablated = Ablate(cubin->ptx, ablation);
    EXPECT_TRUE(ablated.ok()) << ablated.status();
  }
  EXPECT_THAT(*Ablate(cubin->ptx, Ablation::kPlainStores),
              Not(HasSubstr("atom.global")));
  EXPECT_THAT(*Ablate(cubin->ptx, Ablation::kAllRegisters),
              Not(HasSubstr("minnctapersm")));
}

}  // namespace
}  // namespace optrail::ops::cuda
