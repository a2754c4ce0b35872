#include "ops/device/cpu/device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/process/cpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/fingerprint.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

std::unique_ptr<CpuDevice> Cpu(int threads = 1) {
  auto device = MakeCpuDevice(threads);
  EXPECT_TRUE(device.ok()) << device.status();
  return *std::move(device);
}

std::unique_ptr<Buffer> Allocate(Device& device, size_t bytes) {
  auto buffer = device.Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return *std::move(buffer);
}

TEST(CpuDevice, DescribesItself) {
  const auto device = Cpu(2);
  EXPECT_EQ(device->kind(), proto::CPU);
  EXPECT_EQ(device->threads(), 2);
  EXPECT_EQ(device->hardware().id(), CpuHardware().id());
  EXPECT_TRUE(device->Synchronize().ok());
}

TEST(CpuDevice, RefusesImpossibleThreadCounts) {
  EXPECT_THAT(std::string(MakeCpuDevice(0).status().message()),
              HasSubstr("threads is 0, expected 1 to 1024"));
  EXPECT_FALSE(MakeCpuDevice(5000).ok());
}

TEST(CpuDevice, PinsThreadsOnRequestOnly) {
  const std::vector<int> before = UsableCpus();
  std::vector<int> inside;
  std::thread([&] {
    CpuOptions options;
    options.pin = true;
    const auto device = MakeCpuDevice(options);
    ASSERT_TRUE(device.ok()) << device.status();
    inside = UsableCpus();
  }).join();
  EXPECT_EQ(inside, std::vector<int>{before[0]});

  const auto device = Cpu(2);
  EXPECT_EQ(UsableCpus(), before);
}

TEST(CpuDevice, RefusesToPinMoreThreadsThanCores) {
  CpuOptions options;
  options.threads = static_cast<int>(UsableCpus().size()) + 1;
  options.pin = true;
  EXPECT_THAT(std::string(MakeCpuDevice(options).status().message()),
              HasSubstr("cannot pin"));
}

TEST(CpuBuffer, IsAlignedAndHoldsWhatIsCopied) {
  const auto device = Cpu();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const size_t bytes : {1, 64, 4097, 100000, 3 << 20}) {
    buffers.push_back(Allocate(*device, bytes));
    Buffer& buffer = *buffers.back();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0);
    EXPECT_EQ(buffer.size_bytes(), bytes);
    const std::string written(bytes, 'x');
    ASSERT_TRUE(buffer.CopyFromHost(written.data()).ok());
    std::string read(bytes, ' ');
    ASSERT_TRUE(buffer.CopyToHost(&read[0]).ok());
    EXPECT_EQ(read, written);
    EXPECT_TRUE(buffer.CheckGuards().ok());
  }
}

TEST(CpuBuffer, BuffersDoNotAliasModulo4KiB) {
  const auto device = Cpu();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<uintptr_t> offsets;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(Allocate(*device, 1 << 20));
    offsets.push_back(reinterpret_cast<uintptr_t>(buffers.back()->data()) %
                      4096);
  }
  std::sort(offsets.begin(), offsets.end());
  EXPECT_EQ(std::unique(offsets.begin(), offsets.end()), offsets.end());
}

TEST(CpuBuffer, EveryProcessSeesTheSameLayout) {
  const auto offset = [] {
    const auto device = Cpu();
    const auto first = Allocate(*device, 1 << 20);
    const auto second = Allocate(*device, 1 << 20);
    return reinterpret_cast<uintptr_t>(second->data()) % 4096;
  };
  EXPECT_EQ(offset(), offset());
}

TEST(CpuBuffer, GuardsRevealASingleByteOnEitherSide) {
  const auto device = Cpu();
  const auto buffer = Allocate(*device, 1000);
  auto* const data = static_cast<volatile char*>(buffer->data());
  data[0] = data[999] = 1;
  EXPECT_TRUE(buffer->CheckGuards().ok());

  data[1000] ^= 1;
  EXPECT_EQ(buffer->CheckGuards().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(buffer->CheckGuards().message(),
            "byte 1 after the end was overwritten");
  buffer->ArmGuards();
  EXPECT_TRUE(buffer->CheckGuards().ok());

  data[-3] ^= 1;
  EXPECT_EQ(buffer->CheckGuards().message(),
            "byte 3 before the start was overwritten");
}

TEST(CpuBuffer, ReadsOutsideYieldNan) {
  const auto device = Cpu();
  const auto buffer = Allocate(*device, 64);
  auto* const data = static_cast<volatile float*>(buffer->data());
  EXPECT_TRUE(std::isnan(data[-1]));
  EXPECT_TRUE(std::isnan(data[16]));
}

TEST(CpuBuffer, ReportsAPageSizeThatTheSystemHas) {
  const auto device = Cpu();
  const auto small = Allocate(*device, 100);
  EXPECT_EQ(small->page_bytes(), static_cast<size_t>(getpagesize()));
  const auto large = Allocate(*device, 8 << 20);
  EXPECT_TRUE(large->page_bytes() == static_cast<size_t>(getpagesize()) ||
              large->page_bytes() == size_t{2} << 20)
      << large->page_bytes();
}

TEST(CpuBuffer, ReportsMemoryThatCannotBeHad) {
  const auto device = Cpu();
  const auto buffer = device->Allocate(size_t{1} << 60);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()),
              HasSubstr("cannot allocate 1152921504606846976 bytes"));
}

TEST(CpuDevice, FlushesEveryLiveBufferAndNoOther) {
  std::map<const void*, size_t> flushed;
  CpuOptions options;
  options.flush_lines = [&](const void* begin, size_t size_bytes) {
    flushed[begin] += size_bytes;
  };
  const auto device = *MakeCpuDevice(options);
  const auto small = Allocate(*device, 100);
  const auto large = Allocate(*device, 3 << 20);
  { const auto gone = Allocate(*device, 5000); }
  device->FlushCaches();
  EXPECT_EQ(flushed, (std::map<const void*, size_t>{{small->data(), 100},
                                                    {large->data(), 3 << 20}}));
}

TEST(CpuDevice, FlushingKeepsContents) {
  const auto device = Cpu();
  const auto buffer = Allocate(*device, 12345);
  const std::string written(12345, 'y');
  ASSERT_TRUE(buffer->CopyFromHost(written.data()).ok());
  device->FlushCaches();
  EXPECT_EQ(std::memcmp(buffer->data(), written.data(), written.size()), 0);
  EXPECT_TRUE(buffer->CheckGuards().ok());
}

}  // namespace
}  // namespace optrail::ops
