// The CUDA device over a driver without a GPU (fake_driver.cc): what it does
// with failures, guard zones and clocks. Kernels are compiled by
// ops/cuda_kernels_test.cc and run where there is a GPU.

#include "ops/device/cuda/measured_gpu.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/runnable.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/monitor.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/testing/fake_driver.h"
#include "ops/device/cuda/turns.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Driver> FakeDriver() {
  return Driver::Load("ops/device/cuda/testing/libfake_cuda.so");
}

class LaunchesOnce : public Invocation {
 public:
  LaunchesOnce(const Driver& driver, const char* function) : driver_(driver) {
    Module module = nullptr;
    driver.ModuleLoadData(&module, "");
    driver.ModuleGetFunction(&function_, module, function);
  }
  absl::Status Run(const Call& call) const override {
    void* first = call.operands.empty() ? nullptr : call.operands[0];
    void* parameters[] = {&first};
    return driver_.Check(
        driver_.LaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, call.stream.handle,
                             parameters, nullptr),
        "cuLaunchKernel");
  }

 private:
  const Driver& driver_;
  Function function_ = nullptr;
};

std::unique_ptr<Runnable> Kernel(MeasuredGpu& device, const char* function) {
  return *Runnable::Create(
      std::make_unique<LaunchesOnce>(device.driver(), function), device);
}

class OneOperand : public OperandSets {
 public:
  explicit OneOperand(Buffer& buffer)
      : address_(buffer.data()),
        bytes_(static_cast<int64_t>(buffer.size_bytes())) {}
  absl::Span<void* const> addresses(int set) const override {
    return absl::MakeConstSpan(&address_, 1);
  }
  absl::Span<const int64_t> bytes() const override {
    return absl::MakeConstSpan(&bytes_, 1);
  }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }

 private:
  void* const address_;
  const int64_t bytes_;
};

TEST(CudaDriver, SaysWhatIsMissing) {
  EXPECT_EQ(Driver::Load("libno_such_driver.so").status().code(),
            absl::StatusCode::kUnavailable);
  // A library, but no driver.
  const absl::Status libc = Driver::Load("libc.so.6").status();
  EXPECT_THAT(std::string(libc.message()), HasSubstr("has no function cuInit"));
  const Script script("cuInit=100");
  EXPECT_THAT(std::string(FakeDriver().status().message()),
              HasSubstr("unsupported here: cuInit"));
}

TEST(CudaDriver, ADriverWithoutDevicesIsUnavailable) {
  const Script script("devices=-1");
  EXPECT_THAT(std::string(FakeDriver().status().message()),
              HasSubstr("sees no device"));
}

TEST(CudaType, SaysWhyThereIsNoDeviceHere) {
  const absl::Status driver = Driver::Get().status();
  const absl::Status device = MakeDevice(proto::CUDA, {}).status();
  EXPECT_EQ(device.ok(), driver.ok());
  if (driver.ok()) return;
  EXPECT_EQ(device.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.message()), HasSubstr("libcuda.so.1"));
}

class MeasuredGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1);
    auto driver = FakeDriver();
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = std::make_unique<Driver>(*driver);
    auto device = MeasuredGpu::Make(*driver_);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<MeasuredGpu> device_;
};

TEST_F(MeasuredGpuTest, FingerprintIsMadeOfWhatTheDriverTells) {
  const proto::Hardware& hardware = device_->hardware();
  EXPECT_EQ(hardware.id(), "fake-gpu-test");
  EXPECT_EQ(hardware.cores(), 4);
  EXPECT_EQ(hardware.l2_bytes(), 1 << 20);
  std::vector<std::string> names;
  for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
    names.push_back(attribute.name());
    if (attribute.name() == "compute_capability") {
      EXPECT_EQ(attribute.int_(), 90);
    }
  }
  EXPECT_THAT(names, testing::Contains("shared_bytes_per_block"));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST_F(MeasuredGpuTest, MemoryThatRunsOutIsResourceExhausted) {
  const Script script("cuMemAlloc=2");
  const absl::Status status = device_->Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("OUT_OF_MEMORY"));
}

TEST_F(MeasuredGpuTest, SumsOfRowsAreThoseOfTheirSigns) {
  const auto buffer = *device_->Allocate(6 * sizeof(uint16_t));
  // 1, 2, -4 and .5, 0, 1 in bf16.
  const uint16_t values[] = {0x3f80, 0x4000, 0xc080, 0x3f00, 0, 0x3f80};
  ASSERT_TRUE(buffer->CopyFromHost(values).ok());
  RowSums sums;
  sums.data_type = proto::BF16;
  sums.rows = 2;
  sums.signs = {1, 3, 0};
  sums.absolute = 1;
  sums.relative = .5;
  const auto rows = buffer->SumRows(sums);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2 * kRowSums);
  EXPECT_EQ((*rows)[0], 1 + 2 + 4);
  EXPECT_EQ((*rows)[1], -1 + 2 + 4);
  EXPECT_EQ((*rows)[2], -1 - 2 + 4);
  EXPECT_EQ((*rows)[16], 1.5 * 1.5 + 2 * 2 + 3 * 3);
  EXPECT_EQ((*rows)[kRowSums], .5 - 1);
  EXPECT_EQ((*rows)[kRowSums + 16], 1.25 * 1.25 + 1 + 1.5 * 1.5);
  uint16_t part[2];
  ASSERT_TRUE(buffer
                  ->CopyPartToHost(2 * sizeof(uint16_t),
                                   absl::MakeSpan(reinterpret_cast<char*>(part),
                                                  sizeof(part)))
                  .ok());
  EXPECT_EQ(part[0], 0xc080);
  EXPECT_EQ(part[1], 0x3f00);
}

TEST_F(MeasuredGpuTest, AnIllegalAddressIsReportedByName) {
  const Script script("cuStreamSynchronize=700");
  EXPECT_THAT(std::string(device_->Synchronize().message()),
              HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(MeasuredGpuTest, AFailedLaunchIsReportedOnceWhenTheDeviceIsWaitedFor) {
  const auto kernel = Kernel(*device_, "nothing");
  {
    const Script script("cuLaunchKernel=1");
    device_->Note(kernel->Run({}));
    device_->Note(kernel->Run({}));
  }
  EXPECT_THAT(std::string(device_->Synchronize().message()),
              HasSubstr("cuLaunchKernel"));
  EXPECT_TRUE(device_->Synchronize().ok());
}

TEST_F(MeasuredGpuTest, GuardZonesRevealAnOverrun) {
  auto buffer = device_->Allocate(1000);
  ASSERT_TRUE(buffer.ok());
  (*buffer)->ArmGuards();
  ASSERT_TRUE((*buffer)->CheckGuards().ok());
  const auto kernel = Kernel(*device_, "overrun");
  void* const operands[] = {(*buffer)->data()};
  ASSERT_TRUE(kernel->Run(operands).ok());
  const absl::Status guards = (*buffer)->CheckGuards();
  EXPECT_EQ(guards.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(guards.message()), HasSubstr("after the operand"));
}

TEST_F(MeasuredGpuTest, MemoryIsFilledCopiedAndComparedWhereItLies) {
  // No multiple of 16.
  constexpr size_t kBytes = 1006;
  auto one = device_->Allocate(kBytes), other = device_->Allocate(kBytes);
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_TRUE((*one)->far());
  for (const size_t element_bytes : {1, 2}) {
    const unsigned value = 0x01020304;
    ASSERT_TRUE((*one)->FillWith(&value, element_bytes).ok());
    std::string held(kBytes, 0);
    ASSERT_TRUE((*one)->CopyToHost(&held[0]).ok());
    for (size_t i = 0; i < kBytes; ++i) {
      EXPECT_EQ(held[i], i % element_bytes == 0 ? 4 : 3);
    }
    EXPECT_FALSE(*(*one)->Equals(**other));
    ASSERT_TRUE((*other)->CopyFrom(**one).ok());
    EXPECT_TRUE(*(*one)->Equals(**other));
  }
  EXPECT_EQ((*one)->FillWith("12345678", 8).code(),
            absl::StatusCode::kUnimplemented);
  const Script script("cuLaunchKernel=1");
  EXPECT_FALSE((*one)->Equals(**other).ok());
}

TEST_F(MeasuredGpuTest, GuardsAndContentsAreCheckedAtAStroke) {
  // No multiple of 16.
  constexpr size_t kBytes = 1007;
  auto one = device_->Allocate(kBytes), other = device_->Allocate(kBytes);
  ASSERT_TRUE(one.ok() && other.ok());
  const auto is_sound = [&] {
    EXPECT_TRUE((*one)->BeginCheck(&**other).ok());
    EXPECT_TRUE((*other)->BeginCheck(nullptr).ok());
    const auto sound = (*one)->EndCheck();
    EXPECT_TRUE(sound.ok()) << sound.status();
    return *sound;
  };
  EXPECT_TRUE(is_sound());
  const unsigned char value = 7;
  ASSERT_TRUE((*other)->FillWith(&value, 1).ok());
  EXPECT_FALSE(is_sound());
  ASSERT_TRUE((*one)->FillWith(&value, 1).ok());
  EXPECT_TRUE(is_sound());
  const auto kernel = Kernel(*device_, "overrun");
  void* const operands[] = {(*other)->data()};
  ASSERT_TRUE(kernel->Run(operands).ok());
  EXPECT_FALSE(is_sound());
  (*other)->ArmGuards();
  EXPECT_TRUE(is_sound());
  // The first byte behind it.
  static_cast<unsigned char*>((*one)->data())[kBytes] = 0;
  EXPECT_FALSE(is_sound());
  (*one)->ArmGuards();
  // What was begun and not asked about is not lost.
  ASSERT_TRUE((*one)->BeginCheck(nullptr).ok());
  static_cast<unsigned char*>((*one)->data())[-1] = 0;
  EXPECT_FALSE(is_sound());
}

TEST_F(MeasuredGpuTest, ItWorksFromALaunchUntilItWasWaitedFor) {
  const auto kernel = Kernel(*device_, "nothing");
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(device_->busy_ns(), 0);
  device_->SetCapturing(true);
  ASSERT_TRUE(kernel->Run({}).ok());
  device_->SetCapturing(false);
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(device_->busy_ns(), 0);
  ASSERT_TRUE(kernel->Run({}).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  const int64_t once_ns = *device_->busy_ns();
  EXPECT_GT(once_ns, 0);
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(device_->busy_ns(), once_ns);
}

// A launch takes 10 us by the fake clock, whatever stands around the batch.
TEST_F(MeasuredGpuTest, TheClockHoldsTheBatchAlone) {
  auto buffer = device_->Allocate(1000);
  ASSERT_TRUE(buffer.ok());
  const auto kernel = Kernel(*device_, "nothing");
  OneOperand operands(**buffer);
  for (const proto::CacheMode cache : {proto::HOT, proto::COLD}) {
    for (const proto::LaunchMode launch : {proto::STREAM, proto::GRAPH}) {
      auto timer = device_->MakeTimer(*kernel, operands, {cache, launch});
      ASSERT_TRUE(timer.ok()) << timer.status();
      for (const int64_t calls : {1, 7, 3}) {
        ASSERT_LE(calls, (*timer)->max_calls());
        ASSERT_TRUE((*timer)->Prepare(calls).ok());
        const auto elapsed_ns = (*timer)->TimeNs();
        ASSERT_TRUE(elapsed_ns.ok());
        EXPECT_NEAR(static_cast<double>(*elapsed_ns), 10'000.0 * calls, 100)
            << cache << launch;
      }
    }
  }
}

// Prepare() makes untimed calls; between two looks at the energy there are
// none.
TEST_F(MeasuredGpuTest, AMeterReadsCallsAndNothingElse) {
  const auto buffer = *device_->Allocate(1000);
  const auto kernel = Kernel(*device_, "nothing");
  OneOperand operands(*buffer);
  const Script script("watts=1000000");
  const auto nvml =
      Nvml::Open("0000:00:00.0", "ops/device/cuda/testing/libfake_cuda.so");
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  for (const proto::CacheMode cache : {proto::HOT, proto::COLD}) {
    for (const proto::LaunchMode launch : {proto::STREAM, proto::GRAPH}) {
      auto timer = device_->MakeTimer(*kernel, operands, {cache, launch});
      ASSERT_TRUE(timer.ok()) << timer.status();
      ASSERT_TRUE((*timer)->Prepare(3).ok());
      ASSERT_TRUE((*timer)->TimeNs().ok());
      const int64_t before_mj = *nvml->EnergyMillijoules();
      const auto ran = (*timer)->Run(100);
      ASSERT_TRUE(ran.ok()) << ran.status();
      EXPECT_GE(ran->calls, 100);
      // With cold caches whole rounds over the copies.
      EXPECT_LE(ran->calls, cache == proto::HOT ? 102 : 255);
      // A launch takes 10 us, and 10 J at a megawatt.
      EXPECT_EQ(*nvml->EnergyMillijoules() - before_mj, 10'000 * ran->calls)
          << cache << launch;
      EXPECT_NEAR(static_cast<double>(ran->elapsed_ns), 1e4 * ran->calls, 100);
    }
  }
}

TEST_F(MeasuredGpuTest, CallsInPlaceAreNotMeteredWithColdCaches) {
  class InPlace : public OneOperand {
   public:
    using OneOperand::OneOperand;
    bool has_in_out() const override { return true; }
  };
  const auto buffer = *device_->Allocate(1000);
  const auto kernel = Kernel(*device_, "nothing");
  InPlace operands(*buffer);
  auto cold = device_->MakeTimer(*kernel, operands, {proto::COLD, {}});
  ASSERT_TRUE(cold.ok()) << cold.status();
  ASSERT_TRUE((*cold)->Prepare(1).ok());
  EXPECT_EQ((*cold)->Run(10).status().code(), absl::StatusCode::kUnimplemented);
  auto hot = device_->MakeTimer(*kernel, operands, {proto::HOT, {}});
  ASSERT_TRUE(hot.ok()) << hot.status();
  ASSERT_TRUE((*hot)->Prepare(1).ok());
  EXPECT_EQ((*hot)->Run(10)->calls, 10);
}

TEST_F(MeasuredGpuTest, NvmlTellsPowerOfTheMomentApartFromTheAverage) {
  const auto nvml =
      Nvml::Open("0000:00:00.0", "ops/device/cuda/testing/libfake_cuda.so");
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  EXPECT_FALSE(nvml->EnergyMillijoules().has_value());
  EXPECT_FALSE(nvml->InstantWatts().has_value());
  EXPECT_EQ(MakeCudaEnergyMeter(*nvml, nullptr, "fake").status().code(),
            absl::StatusCode::kUnavailable);
  const Script script("watts=600");
  EXPECT_DOUBLE_EQ(*nvml->InstantWatts(), 600);
  EXPECT_DOUBLE_EQ(*nvml->AverageWatts(), 600.001);
  EXPECT_DOUBLE_EQ(*nvml->PowerLimitWatts(), 700);
  EXPECT_DOUBLE_EQ(*nvml->Celsius(), 41);
  const auto meter = MakeCudaEnergyMeter(*nvml, nullptr, "fake");
  ASSERT_TRUE(meter.ok()) << meter.status();
  EXPECT_EQ((*meter)->info().source, "NVML energy counter");
}

TEST_F(MeasuredGpuTest, TimersOfTheSameOperandsTakeTurns) {
  const auto buffer = *device_->Allocate(1000);
  const auto one = Kernel(*device_, "nothing");
  const auto other = Kernel(*device_, "nothing");
  OneOperand operands(*buffer);
  for (const proto::LaunchMode launch : {proto::STREAM, proto::GRAPH}) {
    std::vector<std::unique_ptr<Timer>> timers;
    for (Runnable* const kernel : {one.get(), other.get()}) {
      auto timer = device_->MakeTimer(*kernel, operands, {proto::COLD, launch});
      ASSERT_TRUE(timer.ok()) << timer.status();
      timers.push_back(*std::move(timer));
    }
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < timers.size(); ++i) {
        const int64_t calls = i == 0 ? 2 : 5;
        ASSERT_TRUE(timers[i]->Prepare(calls).ok());
        const auto elapsed_ns = timers[i]->TimeNs();
        ASSERT_TRUE(elapsed_ns.ok()) << elapsed_ns.status();
        EXPECT_NEAR(static_cast<double>(*elapsed_ns), 10'000.0 * calls, 100);
      }
    }
  }
}

TEST_F(MeasuredGpuTest, WhatIsRepeatedLiesBehindItself) {
  std::string held(1024, 0);
  for (int i = 0; i < 256; ++i) held[i] = static_cast<char>(i);
  const auto buffer = *device_->Allocate(held.size());
  ASSERT_TRUE(buffer->CopyFromHost(held.data()).ok());
  device_->Repeat(buffer->data(), 256, 3);
  ASSERT_TRUE(device_->Synchronize().ok());
  ASSERT_TRUE(buffer->CopyToHost(&held[0]).ok());
  EXPECT_EQ(held.substr(256, 256), held.substr(0, 256));
  EXPECT_EQ(held.substr(512, 256), held.substr(0, 256));
  EXPECT_EQ(held.substr(768), std::string(256, 0));
}

TEST_F(MeasuredGpuTest, WorkspacesAreKept) {
  auto workspace = device_->AllocateWorkspace(1000);
  ASSERT_TRUE(workspace.ok()) << workspace.status();
  void* const address = (*workspace)->data();
  workspace->reset();
  const Script script("cuMemAlloc=2");
  workspace = device_->AllocateWorkspace(500);
  ASSERT_TRUE(workspace.ok()) << workspace.status();
  EXPECT_EQ((*workspace)->data(), address);
  EXPECT_FALSE(device_->AllocateWorkspace(500).ok()) << "it is taken";
  workspace->reset();
  EXPECT_FALSE(device_->AllocateWorkspace(2000).ok());
}

TEST_F(MeasuredGpuTest, CodeIsLoadedOnce) {
  const auto first = device_->Load("some code");
  ASSERT_TRUE(first.ok()) << first.status();
  const Script script("cuModuleLoadData=2");
  EXPECT_EQ(*device_->Load("some code"), *first);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(device_->Load("other code").status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

// Configs of the same code that are measured in turns, each in a graph.
TEST_F(MeasuredGpuTest, WhoeverComesLaterTakesNobodysSharedMemory) {
  const Driver& driver = device_->driver();
  Module module = nullptr;
  Function function = nullptr;
  ASSERT_EQ(driver.ModuleLoadData(&module, ""), 0);
  ASSERT_EQ(driver.ModuleGetFunction(&function, module, "nothing"), 0);
  const auto launch = [&](unsigned shared_bytes) {
    void* first = nullptr;
    void* parameters[] = {&first};
    return driver.LaunchKernel(function, 1, 1, 1, 1, 1, 1, shared_bytes,
                               device_->driver_stream(), parameters, nullptr);
  };
  EXPECT_NE(launch(200'000), 0);
  EXPECT_TRUE(device_->AllowShared(function, 200'000).ok());
  EXPECT_TRUE(device_->AllowShared(function, 100'000).ok());
  EXPECT_EQ(launch(200'000), 0);
  EXPECT_NE(launch(200'001), 0);
}

// Another process, of another session, with a device of its own.
TEST_F(MeasuredGpuTest, TwoProcessesTakeTurnsAndAreNoDisturbance) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t other = fork();
  if (other == 0) {
    auto device = MeasuredGpu::Make(*driver_);
    if (!device.ok()) _exit(1);
    const auto turn = (*device)->TakeTurn([] {});
    (void)!write(told[1], turn != nullptr ? "t" : "n", 1);
    while (true) pause();
  }
  char has_turn = 0;
  ASSERT_EQ(read(told[0], &has_turn, 1), 1);
  EXPECT_EQ(has_turn, 't');

  const auto nvml =
      Nvml::Open("0000:00:00.0", "ops/device/cuda/testing/libfake_cuda.so");
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const auto turns =
      Turns::Join(Turns::PathOf("00112233445566778899aabbccddeeff"));
  ASSERT_TRUE(turns.ok()) << turns.status();
  const auto is_disturbed = [&](const std::string& script, const Turns* turns) {
    const Script scripted(script.c_str());
    GpuWatch watch(*nvml, turns);
    // Waits for the first answer, unless the machine is very busy.
    for (int i = 0; i < 100 && watch.clock_hz() == 0; ++i) {
      watch.End();
      watch.Begin();
    }
    const auto monitor = MakeCudaMonitor(&watch);
    monitor->Begin();
    return monitor->End(1000);
  };
  EXPECT_FALSE(is_disturbed("", &*turns));
  const std::string process = absl::StrCat("process=", other);
  EXPECT_FALSE(is_disturbed(process, &*turns));
  // One that takes none: idle, computing, and where nobody tells.
  const pid_t stranger = fork();
  if (stranger == 0) {
    while (true) pause();
  }
  const std::string here = absl::StrCat("process=", stranger);
  EXPECT_FALSE(is_disturbed(absl::StrCat(here, ",busy=-1"), &*turns));
  EXPECT_TRUE(is_disturbed(absl::StrCat(here, ",busy=40"), &*turns));
  EXPECT_TRUE(is_disturbed(here, &*turns));
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  EXPECT_TRUE(is_disturbed("reasons=64", &*turns)) << "heat";
  EXPECT_FALSE(is_disturbed("reasons=4", &*turns)) << "its own power";

  // The other one dies while this one waits.
  bool waited = false;
  const auto turn = device_->TakeTurn([&] {
    waited = true;
    kill(other, SIGKILL);
  });
  EXPECT_TRUE(waited);
  EXPECT_NE(turn, nullptr);
  waitpid(other, nullptr, 0);
}

TEST_F(MeasuredGpuTest, ABatchThatFailsIsNoTime) {
  auto buffer = device_->Allocate(1000);
  ASSERT_TRUE(buffer.ok());
  const auto kernel = Kernel(*device_, "nothing");
  OneOperand operands(**buffer);
  auto timer =
      device_->MakeTimer(*kernel, operands, {proto::HOT, proto::STREAM});
  ASSERT_TRUE(timer.ok());
  ASSERT_TRUE((*timer)->Prepare(1).ok());
  const Script script("cuStreamSynchronize=700");
  EXPECT_FALSE((*timer)->TimeNs().ok());
}

}  // namespace
}  // namespace optrail::ops::cuda
