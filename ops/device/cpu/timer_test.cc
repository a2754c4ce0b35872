#include "ops/device/cpu/timer.h"

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
  void Run(absl::Span<void* const> operands) override {
    ++calls_;
    seen_.insert(operands[0]);
  }
  int calls_ = 0;
  std::set<void*> seen_;
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

TEST(CpuTimer, AKernelThatWorksInPlaceGetsASetForEachCall) {
  const auto device = MakeCpuDevice(1);
  CountingSets sets(4);
  Counting calls;
  CpuTimer timer(calls, sets, **device, {proto::HOT});
  EXPECT_EQ(timer.max_calls(), 4);
  ASSERT_TRUE(timer.Prepare(4).ok());
  ASSERT_TRUE(timer.TimeNs().ok());
  EXPECT_EQ(calls.seen_.size(), 4);
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
