// Operators by a cuDNN without a GPU (ops/vendor/cudnn/testing/fake_cudnn.cc),
// which computes what it is told: graphs say what the operator means, operands
// are packed before they are used, and what the library refuses has an outcome.
// Operators' tests find out what the library itself makes of the graphs, where
// there is a GPU.

#include <dlfcn.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/device/cuda/driver.h"
#include "ops/device/cuda/measured_gpu.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using ::testing::HasSubstr;

constexpr char kSmall[] = "n=2,h=5,w=6,c=3,k=4,r=3,s=2/padding=1,stride=2/f32";

// Nobody has asked for the library before.
bool LoadFake() {
  return dlopen("ops/vendor/cudnn/testing/libfake_cudnn.so",
                RTLD_NOW | RTLD_LOCAL) != nullptr;
}

class Script {
 public:
  explicit Script(const char* text) { setenv("OPTRAIL_FAKE_CUDNN", text, 1); }
  ~Script() { unsetenv("OPTRAIL_FAKE_CUDNN"); }
};

class CudnnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(LoadFake()) << dlerror();
    setenv("XDG_CACHE_HOME", ::testing::TempDir().c_str(), 1);
    auto driver = cuda::Driver::Load("ops/device/cuda/testing/libfake_cuda.so");
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = std::make_unique<cuda::Driver>(*driver);
    auto device = cuda::MeasuredGpu::Make(*driver_);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  absl::StatusOr<std::unique_ptr<Runnable>> Load(const std::string& op,
                                                 const std::string& shape,
                                                 int plan,
                                                 const char* sums = "f32") {
    entry_ = Registry::Get().Find(op);
    const auto backend = entry_->FindBackend(proto::CUDA, "cudnn");
    if (!backend.ok()) return backend.status();
    shape_ = *tuning::ParseShape(shape);
    proto::Config config;
    proto::KnobValue* knob = config.add_set();
    knob->set_knob("plan");
    knob->set_int_(plan);
    knob = config.add_set();
    knob->set_knob("sums");
    knob->set_variant(sums);
    return Runnable::Load(**backend, Artifact(), shape_, config, *device_);
  }

  std::unique_ptr<CheckedOperands> Operands() {
    return *CheckedOperands::Create(*entry_->op, shape_, *device_);
  }

  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<cuda::MeasuredGpu> device_;
  const OperatorEntry* entry_ = nullptr;
  proto::Shape shape_;
};

// Also of types that the library would turn down: what graphs say is the same.
TEST_F(CudnnTest, GraphsComputeWhatOperatorsMean) {
  struct Case {
    const char* op;
    const char* shape;
  };
  for (const Case& c : std::vector<Case>{
           {"conv2d", kSmall},
           {"conv2d", "n=1,h=7,w=3,c=5,k=2,r=3,s=3/padding=2/f32"},
           {"conv2d", "n=3,h=4,w=4,c=6,k=5,r=1,s=1/f32"},
           {"conv_bn_relu", kSmall},
           {"attention", "batch=2,heads=3,queries=5,keys=7,d=4/f32"},
           {"attention",
            "batch=1,heads=4,queries=6,keys=6,d=8/"
            "causal=yes,group=2/f32"},
           {"attention", "batch=1,heads=2,queries=3,keys=8,d=4/causal=yes/f32"},
           {"attention", "batch=1,heads=2,queries=1,keys=8,d=4/causal=yes/f32"},
           {"layer_norm", "rows=3,cols=70/f32"},
           {"layer_norm", "rows=3,cols=70/statistics=written/f32"},
           {"rms_norm", "rows=2,cols=65/f32"},
           {"rms_norm", "rows=2,cols=65/statistics=written/f32"},
           {"layer_norm_backward", "rows=3,cols=66/f32"},
           {"rms_norm_backward", "rows=3,cols=66/f32"}}) {
    // The favourite that can be built, with and without the one that cannot
    // before it, and the fallback, which has a workspace.
    for (const int plan : {0, 1, 2}) {
      SCOPED_TRACE(absl::StrCat(c.op, " ", c.shape, " plan ", plan));
      const auto runnable = Load(c.op, c.shape, plan);
      ASSERT_TRUE(runnable.ok()) << runnable.status();
      EXPECT_EQ((*runnable)->invocation().workspace_bytes(),
                plan == 2 ? 4096 : 0);
      const auto operands = Operands();
      for (const uint64_t seed : {1, 2}) {
        ASSERT_TRUE(operands->Fill(seed).ok());
        ASSERT_TRUE(operands->Arm().ok());
        absl::Status ran = (*runnable)->Run(operands->addresses());
        ran.Update(device_->Synchronize());
        ASSERT_TRUE(ran.ok()) << ran;
        const auto error = operands->Verify();
        EXPECT_TRUE(error.ok()) << error.status();
      }
    }
  }
}

TEST_F(CudnnTest, ThereIsNoPlanBehindTheLast) {
  const absl::Status last = Load("conv2d", kSmall, 3).status();
  EXPECT_EQ(last.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(last.message()),
              HasSubstr("number 3 is asked for of 3 plans"));
  // One of the favourites rounds sums, which is not what one gets unasked.
  EXPECT_TRUE(Load("conv2d", kSmall, 0, "rounded").ok());
  EXPECT_EQ(Load("conv2d", kSmall, 1, "rounded").status().code(),
            absl::StatusCode::kUnimplemented);
  // With favourites that round or cannot be built alone, it is the fallback.
  const Script script("favourites=3");
  const auto fallback = Load("conv2d", kSmall, 0);
  ASSERT_TRUE(fallback.ok()) << fallback.status();
  EXPECT_EQ((*fallback)->invocation().workspace_bytes(), 4096);
}

TEST_F(CudnnTest, TimersPackEverySetOfOperands) {
  const auto runnable = Load("conv2d", kSmall, 0);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  const auto operands = Operands();
  ASSERT_TRUE(operands->Fill(1).ok());
  for (const proto::CacheMode cache : {proto::HOT, proto::COLD}) {
    for (const proto::LaunchMode launch : {proto::STREAM, proto::GRAPH}) {
      auto timer = device_->MakeTimer(**runnable, *operands, {cache, launch});
      ASSERT_TRUE(timer.ok()) << timer.status();
      ASSERT_TRUE((*timer)->Prepare(5).ok());
      EXPECT_TRUE((*timer)->TimeNs().ok());
    }
  }
}

TEST_F(CudnnTest, ACallOfWhatWasNotPackedFails) {
  const auto runnable = Load("conv2d", kSmall, 0);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  const auto operands = Operands();
  Call call;
  call.operands = operands->addresses();
  const absl::Status ran = (*runnable)->invocation().Run(call);
  EXPECT_EQ(ran.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ran.message()),
              HasSubstr("operand 1 of this call was not packed"));
}

TEST_F(CudnnTest, ErrorsOfTheLibraryHaveOutcomes) {
  {
    const Script script("create=1001");  // not initialised
    const absl::Status status = Load("conv2d", kSmall, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("unsupported here: cudnnCreate: cuDNN status 1001 "
                          "(because)"));
  }
  {
    const Script script("create=4003");
    EXPECT_EQ(Load("conv2d", kSmall, 0).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(CudnnTest, TheVersionIsPartOfTheId) {
  ASSERT_EQ(Load("conv2d", kSmall, 0).status().code(), absl::StatusCode::kOk);
  const auto backend = entry_->FindBackend(proto::CUDA, "cudnn");
  EXPECT_EQ((*backend)->library(), "cuDNN 9.19.0");
  EXPECT_TRUE((*backend)->Id(Target()).ok());
}

// In a process that has not looked for it yet.
TEST(CudnnDeathTest, AnotherMajorVersionIsUnsupported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Script script("version=8907");
        if (!LoadFake()) exit(2);
        const auto backend =
            Registry::Get().Find("conv2d")->FindBackend(proto::CUDA, "cudnn");
        const absl::Status status = (*backend)->Id(Target()).status();
        fprintf(stderr, "%s", std::string(status.message()).c_str());
        exit(absl::IsUnavailable(status) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      "unsupported here: cuDNN 8.9.7, expected major version 9");
}

}  // namespace
}  // namespace optrail::ops
