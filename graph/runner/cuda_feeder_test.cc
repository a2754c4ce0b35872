// Batches on their way to a GPU, over a driver without one
// (ops/device/cuda/testing/fake_driver.cc).

#include "graph/runner/cuda_feeder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
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

  // The calls since the last question: what, of which stream, which event.
  static std::vector<std::vector<std::string>> Order() {
    static void* const library = dlopen(kFakeDriver, RTLD_NOW);
    auto* const order =
        reinterpret_cast<const char* (*)()>(dlsym(library, "FakeOrder"));
    std::vector<std::vector<std::string>> calls;
    for (const absl::string_view line :
         absl::StrSplit(order(), '\n', absl::SkipEmpty())) {
      calls.push_back(absl::StrSplit(line, ' '));
    }
    return calls;
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

// A batch waits, in the order of calls, for the buffer on the device until the
// inputs have been copied from it, for the inputs until the batch is there, and
// for the host's memory until it has been sent.
TEST_F(CudaFeederTest, StreamsWaitForEachOther) {
  const auto feeder = Make({1, true});
  ASSERT_TRUE(feeder.ok()) << feeder.status();
  for (int batch = 0; batch < 2; ++batch) {
    Order();
    ASSERT_TRUE((*feeder)->Next().ok());
    ASSERT_TRUE((*feeder)->Send().ok());
    const std::vector<std::vector<std::string>> calls = Order();
    const size_t awaited = batch == 0 ? 0 : 1;
    ASSERT_EQ(calls.size(), awaited + 7);
    const auto call = [&](size_t i) { return calls[awaited + i]; };
    const std::string beside = call(0)[1], used = call(0)[2];
    const std::string computes = call(3)[1], sent = call(2)[2];
    EXPECT_NE(beside, computes);
    EXPECT_NE(sent, used);
    if (batch > 0) {
      EXPECT_EQ(calls[0][0] + calls[0][2], "await" + sent);
    }
    using Call = std::vector<std::string>;
    EXPECT_EQ(call(0), (Call{"wait", beside, used}));
    EXPECT_EQ(call(1)[0] + call(1)[1], "send" + beside);
    EXPECT_EQ(call(2), (Call{"record", beside, sent}));
    EXPECT_EQ(call(3), (Call{"wait", computes, sent}));
    EXPECT_EQ(call(4)[0] + call(4)[1], "copy" + computes);
    EXPECT_EQ(call(5)[0] + call(5)[1], "copy" + computes);
    EXPECT_EQ(call(6), (Call{"record", computes, used}));
  }
}

TEST_F(CudaFeederTest, WithoutBatchesAheadOneStreamDoesAll) {
  const auto feeder = Make({0, true});
  ASSERT_TRUE(feeder.ok()) << feeder.status();
  Order();
  for (int batch = 0; batch < 2; ++batch) {
    ASSERT_TRUE((*feeder)->Next().ok());
    ASSERT_TRUE((*feeder)->Send().ok());
  }
  const auto calls = Order();
  ASSERT_EQ(calls.size(), 7);
  std::vector<std::string> names;
  for (const auto& call : calls) {
    names.push_back(call[0]);
    if (call[0] != "await") {
      EXPECT_EQ(call[1], calls[0][1]);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"send", "send", "record", "await",
                                             "send", "send", "record"}));
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
