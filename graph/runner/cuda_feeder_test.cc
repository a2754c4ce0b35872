// Batches on their way to a GPU, over a driver without one
// (ops/device/cuda/testing/fake_driver.cc).

#include "graph/runner/cuda_feeder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "ops/device/cuda/measured_gpu.h"
#include "ops/device/cuda/testing/fake_driver.h"

namespace optrail::graph {
namespace {

using ops::cuda::Driver;
using ops::cuda::MeasuredGpu;
using ops::cuda::Script;

constexpr char kFakeDriver[] = "ops/device/cuda/testing/libfake_cuda.so";

class CudaFeederTest : public testing::Test {
 protected:
  CudaFeederTest()
      : driver_(Driver::Load(kFakeDriver)),
        gpu_(*MeasuredGpu::Make(*driver_)) {}

  absl::StatusOr<std::unique_ptr<Feeder>> Make(const FeederOptions& options) {
    return MakeCudaFeeder({{x_, 5}, {y_, 300}}, options, *gpu_);
  }

  const absl::StatusOr<Driver> driver_;
  const std::unique_ptr<MeasuredGpu> gpu_;
  char x_[5] = {};  // the memory of the fake GPU is the host's
  char y_[300] = {};
};

TEST_F(CudaFeederTest, EachBatchArrivesWhereItIsRead) {
  for (const int ahead : {0, 1, 2, 5}) {
    for (const bool pinned : {false, true}) {
      const auto feeder = Make({ahead, pinned});
      ASSERT_TRUE(feeder.ok()) << feeder.status();
      for (char batch = 1; batch < 12; ++batch) {
        const auto to = (*feeder)->Next();
        ASSERT_TRUE(to.ok()) << to.status();
        ASSERT_EQ(to->size(), 2);
        std::memset((*to)[0], batch, sizeof x_);
        std::memset((*to)[1], -batch, sizeof y_);
        ASSERT_TRUE((*feeder)->Send().ok());
        EXPECT_EQ(std::string(x_, sizeof x_), std::string(sizeof x_, batch));
        EXPECT_EQ(std::string(y_, sizeof y_), std::string(sizeof y_, -batch));
      }
    }
  }
}

TEST_F(CudaFeederTest, BatchesOnTheirWayHaveMemoryOfTheirOwn) {
  const auto feeder = Make({3, true});
  ASSERT_TRUE(feeder.ok()) << feeder.status();
  char* first = nullptr;
  for (int batch = 0; batch < 3; ++batch) {
    char* const at = (*(*feeder)->Next())[0];
    EXPECT_NE(at, first);
    if (batch == 0) first = at;
    ASSERT_TRUE((*feeder)->Send().ok());
  }
  EXPECT_EQ((*(*feeder)->Next())[0], first);
}

TEST_F(CudaFeederTest, SaysWhatTheDriverRefuses) {
  for (const char* call : {"cuMemHostAlloc=2", "cuMemcpyHtoDAsync=700"}) {
    const Script script(call);
    const auto feeder = Make({1, true});
    const absl::Status status =
        feeder.ok() ? (*feeder)->Send() : feeder.status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(std::string(call, strcspn(call, "="))),
              absl::string_view::npos)
        << status;
  }
}

}  // namespace
}  // namespace optrail::graph
