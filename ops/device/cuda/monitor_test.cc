// The watch of a GPU and its neighbours, over a driver without a GPU
// (fake_driver.cc).

#include "ops/device/cuda/monitor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/neighbours.h"
#include "ops/device/cuda/nvml.h"
#include "ops/device/cuda/testing/fake_driver.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;

class NeighbourTest : public testing::Test {
 protected:
  static constexpr absl::Duration kLag = absl::Milliseconds(60);

  void SetUp() override {
    neighbour_ = fork();
    if (neighbour_ == 0) {
      while (true) pause();
    }
    nvml_ =
        Nvml::Open("0000:00:00.0", "ops/device/cuda/testing/libfake_cuda.so");
    ASSERT_TRUE(nvml_.ok()) << nvml_.status();
  }
  void TearDown() override {
    kill(neighbour_, SIGKILL);
    waitpid(neighbour_, nullptr, 0);
  }
  std::string With(const char* busy) const {
    return absl::StrCat("process=", neighbour_, ",busy=", busy);
  }

  pid_t neighbour_ = 0;
  absl::StatusOr<Nvml> nvml_ = absl::UnavailableError("not opened");
};

TEST_F(NeighbourTest, AnIdleOneIsNamedAndNobodyWaits) {
  const Script script(With("-1"));
  GpuWatch watch(*nvml_, nullptr, kLag);
  const auto monitor = MakeCudaMonitor(&watch);
  bool waited = false;
  watch.AwaitQuiet(absl::InfiniteDuration(), [&] { waited = true; });
  EXPECT_FALSE(waited);
  monitor->Begin();
  EXPECT_FALSE(monitor->End(1000));
  EXPECT_EQ(dynamic_cast<LateMonitor&>(*monitor).CountDisturbedLate(), 0);
  EXPECT_THAT(watch.Names().idle, HasSubstr(absl::StrCat(neighbour_)));
  EXPECT_EQ(watch.Names().active, "");
}

TEST_F(NeighbourTest, ABusyOneIsNamedAndWaitedForAsLongAsAllowed) {
  const Script script(With("40"));
  GpuWatch watch(*nvml_, nullptr, kLag);
  const auto monitor = MakeCudaMonitor(&watch);
  monitor->Begin();
  EXPECT_TRUE(monitor->End(1000));
  EXPECT_THAT(watch.Names().active, HasSubstr(absl::StrCat(neighbour_)));
  int waits = 0;
  watch.AwaitQuiet(absl::Milliseconds(1), [&] { ++waits; });
  watch.AwaitQuiet(absl::InfiniteDuration(), [&] { ++waits; });
  EXPECT_EQ(waits, 1) << "patience ends once";
}

TEST_F(NeighbourTest, OneThatEndsIsWaitedFor) {
  Script script(With("40"));
  GpuWatch watch(*nvml_, nullptr, kLag);
  const auto monitor = MakeCudaMonitor(&watch);
  bool waited = false;
  watch.AwaitQuiet(absl::InfiniteDuration(), [&] {
    waited = true;
    script.Change(With("-1"));
  });
  EXPECT_TRUE(waited);
  EXPECT_FALSE(watch.disturbed());
  EXPECT_THAT(watch.Names().idle, HasSubstr(absl::StrCat(neighbour_)));
}

TEST_F(NeighbourTest, OneThatBeginsIsFoundAfterTheSamples) {
  Script script(With("-1"));
  GpuWatch watch(*nvml_, nullptr, kLag);
  const auto monitor = MakeCudaMonitor(&watch);
  for (int i = 0; i < 3; ++i) {
    monitor->Begin();
    EXPECT_FALSE(monitor->End(1000));
  }
  script.Change(With("40"));
  // All three lay within the period that was accounted for.
  EXPECT_EQ(dynamic_cast<LateMonitor&>(*monitor).CountDisturbedLate(), 3);
}

}  // namespace
}  // namespace optrail::ops::cuda
