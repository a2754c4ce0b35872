#include "base/process/machine_memory.h"

#include <cstdint>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(MachineMemory, IsWhatTheKernelTells) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  ASSERT_TRUE(file >> name >> kib);
  ASSERT_EQ(name, "MemTotal:");
  EXPECT_EQ(MachineMemoryBytes(), kib << 10);
}

}  // namespace
}  // namespace optrail
