#include "ops/device/cpu/timer.h"

#include <time.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ops/core/runnable.h"
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

// What was called; invocations themselves are immutable.
struct Counts {
  int calls = 0;
  std::set<void*> seen;
  std::set<void*> packed;
};

class Counting : public Invocation {
 public:
  explicit Counting(Counts& counts) : counts_(counts) {}
  int64_t packed_bytes() const override { return 1; }
  absl::Status Pack(const Call& call) const override {
    *static_cast<char*>(call.packed) = 1;
    counts_.packed.insert(call.operands[0]);
    return absl::OkStatus();
  }
  absl::Status Run(const Call& call) const override {
    EXPECT_EQ(*static_cast<const char*>(call.packed), 1);
    ++counts_.calls;
    counts_.seen.insert(call.operands[0]);
    return absl::OkStatus();
  }

 private:
  Counts& counts_;
};

class Failing : public Invocation {
 public:
  absl::Status Run(const Call&) const override {
    return absl::InvalidArgumentError("came to nothing");
  }
};

std::unique_ptr<Runnable> RunnableOf(
    std::unique_ptr<const Invocation> invocation, Device& device) {
  return *Runnable::Create(std::move(invocation), device);
}

TEST(CpuTimer, MakesTheCallsItWasPreparedFor) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(1);
  Counts counts;
  const auto runnable =
      RunnableOf(std::make_unique<Counting>(counts), **device);
  const auto timer = CpuTimer::Create(*runnable, sets, **device, {proto::HOT});
  ASSERT_TRUE(timer.ok()) << timer.status();
  ASSERT_TRUE((*timer)->Prepare(7).ok());
  const auto elapsed_ns = (*timer)->TimeNs();
  ASSERT_TRUE(elapsed_ns.ok());
  EXPECT_GE(*elapsed_ns, 0);
  EXPECT_EQ(counts.calls, 7);
  EXPECT_EQ(sets.restored_, 0);
  EXPECT_GT((*timer)->max_calls(), 1'000'000);
  proto::Measurement measurement;
  (*timer)->Fill(&measurement);
  ASSERT_EQ(measurement.metrics_size(), 1);
  EXPECT_EQ(measurement.metrics(0).metric(), "cpu_time");
}

TEST(CpuTimer, ReportsTheErrorOfACall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(1);
  const auto runnable = RunnableOf(std::make_unique<Failing>(), **device);
  const auto timer = CpuTimer::Create(*runnable, sets, **device, {proto::HOT});
  ASSERT_TRUE(timer.ok() && (*timer)->Prepare(7).ok());
  EXPECT_EQ((*timer)->TimeNs().status().message(), "came to nothing");
}

int64_t ThreadCpuNs() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// Every task works for the same time, whoever takes it.
class Working : public Invocation {
 public:
  absl::Status Run(const Call& call) const override {
    call.ParallelFor(kTasks, [](int64_t) {
      const int64_t start_ns = ThreadCpuNs();
      while (ThreadCpuNs() - start_ns < kTaskNs) {
      }
    });
    return absl::OkStatus();
  }
  static constexpr int64_t kTasks = 3;
  static constexpr int64_t kTaskNs = 1'000'000;
};

TEST(CpuTimer, CountsTheWorkOfThreadsThatAreStillRunning) {
  const auto device = MakeCpuDevice(3);
  ASSERT_TRUE(device.ok()) << device.status();
  CountingSets sets(1);
  const auto runnable = RunnableOf(std::make_unique<Working>(), **device);
  const auto timer = CpuTimer::Create(*runnable, sets, **device, {proto::HOT});
  ASSERT_TRUE(timer.ok()) << timer.status();
  for (int batch = 0; batch < 20; ++batch) {
    ASSERT_TRUE((*timer)->Prepare(1).ok());
    ASSERT_TRUE((*timer)->TimeNs().ok());
    EXPECT_GE(*(*timer)->WorkedNs(), Working::kTasks * Working::kTaskNs);
  }
}

TEST(CpuTimer, AKernelThatWorksInPlaceGetsASetForEachCall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(4);
  Counts counts;
  const auto runnable =
      RunnableOf(std::make_unique<Counting>(counts), **device);
  const auto timer = CpuTimer::Create(*runnable, sets, **device, {proto::HOT});
  ASSERT_TRUE(timer.ok()) << timer.status();
  EXPECT_EQ((*timer)->max_calls(), 4);
  ASSERT_TRUE((*timer)->Prepare(4).ok());
  ASSERT_TRUE((*timer)->TimeNs().ok());
  EXPECT_EQ(counts.seen.size(), 4);
  EXPECT_EQ(counts.packed, counts.seen);
  EXPECT_EQ(sets.restored_, 1);
}

TEST(CpuTimer, WithColdCachesABatchIsOneCall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(4);
  Counts counts;
  const auto runnable =
      RunnableOf(std::make_unique<Counting>(counts), **device);
  const auto timer = CpuTimer::Create(*runnable, sets, **device, {proto::COLD});
  ASSERT_TRUE(timer.ok()) << timer.status();
  EXPECT_EQ((*timer)->max_calls(), 1);
}

}  // namespace
}  // namespace optrail::ops
