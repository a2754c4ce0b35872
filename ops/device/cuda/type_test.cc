#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops {
namespace {

TEST(Cuda, SaysWhyThereIsNoDevice) {
  const absl::Status driver = CudaDriverStatus();
  const absl::Status device = MakeDevice(proto::CUDA, {}).status();
  ASSERT_FALSE(device.ok());
  if (driver.ok()) {
    EXPECT_EQ(device.code(), absl::StatusCode::kUnimplemented);
  } else {
    EXPECT_EQ(device, driver);
    EXPECT_EQ(device.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(device.message()),
                testing::HasSubstr("libcuda.so.1"));
  }
}

}  // namespace
}  // namespace optrail::ops
