// Every CUDA kernel compiles, for the architectures that it is written for:
// NVRTC needs no GPU. Where NVRTC is not found the test says so and skips.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "ops/device/cuda/nvrtc.h"

namespace optrail::ops::cuda {
namespace {

struct Kernel {
  std::string source;
  std::vector<std::string> architectures;
  // Macros of a few configs, from small to large.
  std::vector<std::vector<std::string>> configs;
};

std::vector<Kernel> Kernels() {
  return {
      {"ops/add/add_cuda.cu",
       {"sm_80", "sm_90a"},
       {{"ELEMENT=0", "THREADS=64", "VECTOR=1", "UNROLL=1", "STREAMING=0"},
        {"ELEMENT=1", "THREADS=256", "VECTOR=8", "UNROLL=2", "STREAMING=1"},
        {"ELEMENT=2", "THREADS=1024", "VECTOR=8", "UNROLL=8", "STREAMING=0"}}},
      {"ops/softmax/softmax_cuda.cu",
       {"sm_80", "sm_90a"},
       {{"ELEMENT=0", "THREADS_PER_ROW=32", "ROWS_PER_BLOCK=2", "CLUSTER=1",
         "VECTOR=4", "ITEMS=1"},
        {"ELEMENT=2", "THREADS_PER_ROW=512", "ROWS_PER_BLOCK=1", "CLUSTER=1",
         "VECTOR=8", "ITEMS=4"}}},
      {"ops/softmax/softmax_cuda.cu",
       {"sm_90a"},
       {{"ELEMENT=2", "THREADS_PER_ROW=256", "ROWS_PER_BLOCK=1", "CLUSTER=8",
         "VECTOR=8", "ITEMS=8"}}},
      {"ops/matmul/matmul_mma.cu",
       {"sm_80", "sm_90a"},
       {{"INPUT=\"f16\"", "TILE_M=128", "TILE_N=128", "TILE_K=32", "WARPS_M=2",
         "WARPS_N=2", "STAGES=4", "GROUP=8", "VECTOR_A=8", "VECTOR_B=8"},
        {"INPUT=\"bf16\"", "TILE_M=64", "TILE_N=64", "TILE_K=32", "WARPS_M=1",
         "WARPS_N=1", "STAGES=3", "GROUP=8", "VECTOR_A=1", "VECTOR_B=2"}}},
      {"ops/matmul/matmul_hopper.cu",
       {"sm_90a"},
       {{"INPUT=\"bf16\"", "CONSUMERS=1", "M_TILES=1", "BN=64", "STAGES=8",
         "CLUSTER_M=1", "CLUSTER_N=1", "GROUP=8", "SPLIT_K=4"},
        {"INPUT=\"bf16\"", "CONSUMERS=2", "M_TILES=1", "BN=256", "STAGES=4",
         "CLUSTER_M=2", "CLUSTER_N=1", "GROUP=8", "SPLIT_K=1"},
        {"INPUT=\"f16\"", "CONSUMERS=3", "M_TILES=1", "BN=128", "STAGES=4",
         "CLUSTER_M=1", "CLUSTER_N=2", "GROUP=16", "SPLIT_K=1"}}},
      {"ops/matmul/matmul_hopper_skinny.cu",
       {"sm_90a"},
       {{"INPUT=\"bf16\"", "CONSUMERS=1", "BM=8", "STAGES=12", "SPLIT_K=1"},
        {"INPUT=\"f16\"", "CONSUMERS=4", "BM=64", "STAGES=4", "SPLIT_K=8"}}},
  };
}

TEST(CudaKernels, Compile) {
  const auto nvrtc = Nvrtc::Get();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const Kernel& kernel : Kernels()) {
    const auto source = ReadFile(kernel.source);
    ASSERT_TRUE(source.ok()) << source.status();
    for (const std::string& architecture : kernel.architectures) {
      for (const std::vector<std::string>& config : kernel.configs) {
        std::vector<std::string> options = {
            absl::StrCat("-arch=", architecture), "-std=c++17"};
        for (const std::string& macro : config) {
          options.push_back(absl::StrCat("-D", macro));
        }
        const auto cubin = (*nvrtc)->Compile(*source, kernel.source, options);
        ASSERT_TRUE(cubin.ok()) << architecture << ": " << cubin.status();
        EXPECT_GT(cubin->bytes.size(), 1000u);
        ASSERT_TRUE(cubin->facts.count("registers")) << cubin->log;
        EXPECT_LE(cubin->facts.at("registers"), 255);
      }
    }
  }
}

TEST(Nvrtc, FactsAreWhatPtxasReports) {
  const auto facts = FactsOfPtxasLog(
      "ptxas info    : Function properties for matmul\n"
      "    40 bytes stack frame, 56 bytes spill stores, 80 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 64 bytes smem\n");
  EXPECT_EQ(facts.at("registers"), 168);
  EXPECT_EQ(facts.at("spill_bytes"), 56);
  EXPECT_EQ(facts.at("stack_bytes"), 40);
  EXPECT_EQ(facts.at("shared_bytes"), 64);
}

TEST(Nvrtc, ErrorsNameFileAndLine) {
  const auto nvrtc = Nvrtc::Get();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const auto cubin =
      (*nvrtc)->Compile("\nthis is no CUDA;\n", "wrong.cu", {"-arch=sm_80"});
  ASSERT_FALSE(cubin.ok());
  EXPECT_NE(cubin.status().message().find("wrong.cu(2)"), std::string::npos)
      << cubin.status();
}

}  // namespace
}  // namespace optrail::ops::cuda
