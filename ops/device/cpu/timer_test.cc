#include "ops/device/cpu/timer.h"

#include <time.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"

namespace optrail::ops {
namespace {

class CountingSets : public OperandSets {
 public:
  explicit CountingSets(int sets) : addresses_(sets) {
    for (int i = 0; i < sets; ++i) addresses_[i] = {&values_[i % 8]};
  }
  absl::Span<void* const> addresses(int set) const override {
    return addresses_[set];
  }
  absl::Span<const int64_t> bytes() const override {
    return absl::MakeConstSpan(&kBytes, 1);
  }
  int sets() const override { return static_cast<int>(addresses_.size()); }
  bool has_in_out() const override { return addresses_.size() > 1; }
  absl::Status Restore() override {
    ++restored_;
    return absl::OkStatus();
  }
  int restored_ = 0;

 private:
  static constexpr int64_t kBytes = sizeof(float);
  float values_[8] = {};
  std::vector<std::vector<void*>> addresses_;
};

class Counting : public Invocation {
 public:
  void Pack(absl::Span<void* const> operands) override {
    packed_.insert(operands[0]);
  }
  void Run(absl::Span<void* const> operands) override {
    ++calls_;
    seen_.insert(operands[0]);
  }
  int calls_ = 0;
  std::set<void*> seen_;
  std::set<void*> packed_;
};

TEST(CpuTimer, MakesTheCallsItWasPreparedFor) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(1);
  Counting calls;
  CpuTimer timer(calls, sets, **device, {proto::HOT});
  ASSERT_TRUE(timer.Prepare(7).ok());
  const auto elapsed_ns = timer.TimeNs();
  ASSERT_TRUE(elapsed_ns.ok());
  EXPECT_GE(*elapsed_ns, 0);
  EXPECT_EQ(calls.calls_, 7);
  EXPECT_EQ(sets.restored_, 0);
  EXPECT_GT(timer.max_calls(), 1'000'000);
  proto::Measurement measurement;
  timer.Fill(&measurement);
  ASSERT_EQ(measurement.metrics_size(), 1);
  EXPECT_EQ(measurement.metrics(0).metric(), "cpu_time");
}

int64_t ThreadCpuNs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// Every task works for the same time, whoever takes it.
class Working : public Invocation {
 public:
  explicit Working(CpuDevice& device) : device_(device) {}
  void Run(absl::Span<void* const>) override {
    device_.ParallelFor(kTasks, [](int64_t) {
      const int64_t start_ns = ThreadCpuNs();
      while (ThreadCpuNs() - start_ns < kTaskNs) {
      }
    });
  }
  static constexpr int64_t kTasks = 3;
  static constexpr int64_t kTaskNs = 1'000'000;

 private:
  CpuDevice& device_;
};

TEST(CpuTimer, CountsTheWorkOfThreadsThatAreStillRunning) {
  const auto device = MakeCpuDevice(3);
  ASSERT_TRUE(device.ok()) << device.status();
  CountingSets sets(1);
  Working work(**device);
  CpuTimer timer(work, sets, **device, {proto::HOT});
  for (int batch = 0; batch < 20; ++batch) {
    ASSERT_TRUE(timer.Prepare(1).ok());
    ASSERT_TRUE(timer.TimeNs().ok());
    EXPECT_GE(*timer.WorkedNs(), Working::kTasks * Working::kTaskNs);
  }
}

TEST(CpuTimer, AKernelThatWorksInPlaceGetsASetForEachCall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(4);
  Counting calls;
  CpuTimer timer(calls, sets, **device, {proto::HOT});
  EXPECT_EQ(timer.max_calls(), 4);
  ASSERT_TRUE(timer.Prepare(4).ok());
  ASSERT_TRUE(timer.TimeNs().ok());
  EXPECT_EQ(calls.seen_.size(), 4);
  EXPECT_EQ(calls.packed_, calls.seen_);
  EXPECT_EQ(sets.restored_, 1);
}

TEST(CpuTimer, WithColdCachesABatchIsOneCall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(4);
  Counting calls;
  CpuTimer timer(calls, sets, **device, {proto::COLD});
  EXPECT_EQ(timer.max_calls(), 1);
}

}  // namespace
}  // namespace optrail::ops
