#include "ops/device/cuda/nvrtc.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_THAT(std::string(cubin.status().message()), HasSubstr("wrong.cu(2)"));
}

}  // namespace
}  // namespace optrail::ops::cuda
