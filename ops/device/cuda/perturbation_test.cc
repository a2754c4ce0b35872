// Perturbed calls over a driver without a GPU (fake_driver.cc). What they do to
// times is measured where there is one: diagnosis/evaluation.

#include "ops/device/cuda/perturbation.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/device/cuda/testing/fake_driver.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;

constexpr char kFakeDriver[] = "ops/device/cuda/testing/libfake_cuda.so";
constexpr int64_t kBytes = 300 << 10;  // of an operand; a granule has 64 KiB

int Mappings() {
  void* const library = dlopen(kFakeDriver, RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int (*)()>(dlsym(library, "FakeMappings"))();
}

// Remembers where its operands and workspaces were.
class Remembers : public Invocation {
 public:
  explicit Remembers(const Driver& driver) : driver_(driver) {
    Module module = nullptr;
    driver.ModuleLoadData(&module, "");
    driver.ModuleGetFunction(&function_, module, "nothing");
  }
  int64_t workspace_bytes() const override { return kBytes; }
  int64_t zeroed_bytes() const override { return zeroed; }
  absl::Status Run(const Call& call) const override {
    calls.push_back(call);
    return driver_.Check(
        driver_.LaunchKernel(function_, 6, 1, 1, 256, 1, 1, 0,
                             call.stream.handle, nullptr, nullptr),
        "cuLaunchKernel");
  }

  int64_t zeroed = 0;
  mutable std::vector<Call> calls;

 private:
  const Driver& driver_;
  Function function_ = nullptr;
};

class TwoOperands : public OperandSets {
 public:
  TwoOperands(Buffer& x, Buffer& y)
      : addresses_{x.data(), y.data()}, bytes_{kBytes, kBytes} {}
  absl::Span<void* const> addresses(int) const override { return addresses_; }
  absl::Span<const int64_t> bytes() const override { return bytes_; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }

 private:
  const std::vector<void*> addresses_;
  const std::vector<int64_t> bytes_;
};

class CudaPerturbationTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
    auto driver = Driver::Load(kFakeDriver);
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = std::make_unique<Driver>(*driver);
    auto device = MeasuredGpu::Make(*driver_);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    x_ = *device_->Allocate(kBytes);
    y_ = *device_->Allocate(kBytes);
    operands_ = std::make_unique<TwoOperands>(*x_, *y_);
    auto kernel = std::make_unique<Remembers>(*driver_);
    kernel_ = kernel.get();
    runnable_ = *Runnable::Create(std::move(kernel), *device_);
  }
  absl::StatusOr<std::unique_ptr<Timer>> TimerOf(
      const proto::Perturbation& perturbation,
      proto::LaunchMode launch = proto::STREAM) {
    return device_->MakePerturbedTimer(*runnable_, *operands_,
                                       {proto::COLD, launch}, perturbation);
  }

  std::unique_ptr<Driver> driver_;
  std::unique_ptr<MeasuredGpu> device_;
  std::unique_ptr<Buffer> x_, y_;
  std::unique_ptr<TwoOperands> operands_;
  Remembers* kernel_ = nullptr;
  std::unique_ptr<Runnable> runnable_;
};

TEST_F(CudaPerturbationTest, AnAliasedOperandIsOneGranuleAgainAndAgain) {
  std::string input(kBytes, 0);
  for (int64_t i = 0; i < kBytes; ++i) input[i] = static_cast<char>(i % 251);
  ASSERT_TRUE(x_->CopyFromHost(input.data()).ok());
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(0);
  auto timer = TimerOf(perturbation);
  ASSERT_TRUE(timer.ok()) << timer.status();
  EXPECT_EQ(Mappings(), 2);
  ASSERT_TRUE((*timer)->Prepare(1).ok());
  ASSERT_TRUE((*timer)->TimeNs().ok());
  const Call& call = kernel_->calls.back();
  ASSERT_NE(call.operands[0], x_->data());
  EXPECT_EQ(call.operands[1], y_->data());
  auto* const aliased = static_cast<char*>(call.operands[0]);
  constexpr int64_t kGranule = 64 << 10;
  EXPECT_EQ(std::string(aliased, kGranule), input.substr(0, kGranule));
  EXPECT_EQ(aliased[4 * kGranule], input[0]);
  aliased[kGranule] = 77;
  EXPECT_EQ(aliased[0], 77);
  // The operand itself is not touched, and everything is given back.
  EXPECT_EQ(*static_cast<char*>(x_->data()), input[0]);
  timer->reset();
  EXPECT_EQ(Mappings(), 0);
}

TEST_F(CudaPerturbationTest, AWorkspaceWithTicketsStaysWhereItIs) {
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(-1);
  const auto workspace_of_a_call = [&] {
    auto timer = TimerOf(perturbation);
    EXPECT_TRUE(timer.ok()) << timer.status();
    EXPECT_TRUE((*timer)->Prepare(1).ok());
    EXPECT_TRUE((*timer)->TimeNs().ok());
    return kernel_->calls.back().workspace;
  };
  void* const own = runnable_->Prepare(operands_->addresses(0))->workspace;
  EXPECT_NE(workspace_of_a_call(), own);
  kernel_->zeroed = 4;
  EXPECT_EQ(workspace_of_a_call(), own);
}

TEST_F(CudaPerturbationTest, ADeviceThatMapsNothingSaysSo) {
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(0);
  {
    const Script script("cuMemMap=801");
    const absl::Status status = TimerOf(perturbation).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("unsupported here: cuMemMap"));
  }
  EXPECT_EQ(Mappings(), 0);
  driver_->MemMap = nullptr;  // an older driver
  EXPECT_EQ(TimerOf(perturbation).status().code(),
            absl::StatusCode::kUnimplemented);
  perturbation.add_aliased_operands(2);
  perturbation.mutable_aliased_operands()->erase(
      perturbation.aliased_operands().begin());
  EXPECT_EQ(TimerOf(perturbation).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaPerturbationTest, MemoryThatRunsOutIsResourceExhausted) {
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(0);
  const Script script("cuMemCreate=2");
  EXPECT_EQ(TimerOf(perturbation).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(CudaPerturbationTest, WhatAGpuDoesNotOfferIsUnsupported) {
  proto::Perturbation pages, flush, three;
  pages.set_pages(proto::Perturbation::SMALL);
  flush.set_flush_denormals(true);
  three.set_concurrent_calls(3);
  EXPECT_EQ(TimerOf(pages).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(TimerOf(flush).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(TimerOf(three).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaPerturbationTest, EverySecondCallHasAStreamAndAWorkspaceOfItsOwn) {
  proto::Perturbation perturbation;
  perturbation.set_concurrent_calls(2);
  for (const proto::LaunchMode launch : {proto::STREAM, proto::GRAPH}) {
    auto timer = TimerOf(perturbation, launch);
    ASSERT_TRUE(timer.ok()) << timer.status();
    kernel_->calls.clear();
    ASSERT_TRUE((*timer)->Prepare(4).ok());
    ASSERT_TRUE((*timer)->TimeNs().ok());
    ASSERT_GE(kernel_->calls.size(), 4u);
    EXPECT_NE(kernel_->calls[0].workspace, kernel_->calls[1].workspace);
    EXPECT_EQ(kernel_->calls[0].workspace, kernel_->calls[2].workspace);
  }
}

TEST_F(CudaPerturbationTest, AProfileTellsTheLaunches) {
  const auto metrics = device_->ProfileCalls(*runnable_, *operands_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  std::map<std::string, double> values;
  for (const auto& metric : *metrics) {
    values[metric.metric()] = metric.values(0);
  }
  EXPECT_EQ(values["kernels"], 1);
  EXPECT_EQ(values["grid_blocks"], 6);
  EXPECT_EQ(values["block_threads"], 256);
  EXPECT_EQ(values["resident_blocks"], 8);
  EXPECT_EQ(values["multiprocessor_warps"], 64);
  EXPECT_NEAR(values["empty_launch_ns"], 10'000, 1);
}

}  // namespace
}  // namespace optrail::ops::cuda
