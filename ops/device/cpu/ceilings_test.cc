#include "ops/device/cpu/ceilings.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"

namespace optrail::ops {
namespace {

TEST(Ceilings, MeasuresEveryNumber) {
  const auto device = MakeCpuDevice(2);
  ASSERT_TRUE(device.ok()) << device.status();
  CeilingOptions options;
  options.time_per_number = absl::Milliseconds(2);
  const auto ceilings = MeasureCeilings(**device, options);
  ASSERT_TRUE(ceilings.ok()) << ceilings.status();
  EXPECT_GT(ceilings->flop_per_s_one_thread(), 0);
  EXPECT_GT(ceilings->flop_per_s_all_threads(), 0);
  EXPECT_GT(ceilings->l1_read_bytes_per_s(), 0);
  EXPECT_GT(ceilings->l2_read_bytes_per_s(), 0);
  EXPECT_GT(ceilings->memory_read_bytes_per_s_one_thread(), 0);
  EXPECT_GT(ceilings->memory_read_bytes_per_s_all_threads(), 0);
  EXPECT_GT(ceilings->memory_copy_bytes_per_s_one_thread(), 0);
  EXPECT_GT(ceilings->memory_copy_bytes_per_s_all_threads(), 0);
  EXPECT_GT(ceilings->measured_unix_ns(), 0);
  const proto::Hardware& hardware = (*device)->hardware();
  // A virtual machine may hide its caches.
  if (hardware.has_l3_bytes() &&
      hardware.l3_bytes() >= 6 * hardware.l2_bytes()) {
    EXPECT_GT(ceilings->l3_read_bytes_per_s(), 0);
  }
  // Memory is not read from a cache, unless there is little of it.
  EXPECT_GE(
      ceilings->memory_buffer_bytes(),
      std::min(kL3Multiple * hardware.l3_bytes(), hardware.memory_bytes() / 8));
}

}  // namespace
}  // namespace optrail::ops
