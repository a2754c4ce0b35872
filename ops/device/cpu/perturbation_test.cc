#include "ops/device/cpu/perturbation.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"

namespace optrail::ops {
namespace {

constexpr int64_t kCount = 1 << 18;

// y = 2 x, in two parallel loops.
class Twice : public Invocation {
 public:
  absl::Status Run(const Call& call) const override {
    const auto* const x = static_cast<const float*>(call.operands[0]);
    auto* const y = static_cast<float*>(call.operands[1]);
    addresses = {call.operands.begin(), call.operands.end()};
    for (int half = 0; half < 2; ++half) {
      call.ParallelFor(4, [&](int64_t part) {
        const int64_t begin = (half * 4 + part) * kCount / 8;
        for (int64_t i = begin; i < begin + kCount / 8; ++i) y[i] = 2 * x[i];
      });
    }
    return absl::OkStatus();
  }
  mutable std::vector<void*> addresses;  // of the last call
};

class Vectors : public OperandSets {
 public:
  Vectors() : x_(kCount, 1), y_(kCount) {
    addresses_ = {x_.data(), y_.data()};
    bytes_ = {kCount * 4, kCount * 4};
  }
  absl::Span<void* const> addresses(int) const override { return addresses_; }
  absl::Span<const int64_t> bytes() const override { return bytes_; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }
  const std::vector<float>& y() const { return y_; }

 private:
  std::vector<float> x_, y_;
  std::vector<void*> addresses_;
  std::vector<int64_t> bytes_;
};

class PerturbationTest : public testing::Test {
 protected:
  PerturbationTest() {
    auto twice = std::make_unique<Twice>();
    twice_ = twice.get();
    runnable_ = *Runnable::Create(std::move(twice), *device_);
  }
  absl::StatusOr<std::unique_ptr<Timer>> TimerOf(
      const proto::Perturbation& perturbation) {
    return MakePerturbedCpuTimer(*runnable_, operands_, *device_,
                                 {proto::HOT, {}}, perturbation);
  }

  const std::unique_ptr<CpuDevice> device_ = *MakeCpuDevice(2);
  Vectors operands_;
  const Twice* twice_ = nullptr;
  std::unique_ptr<Runnable> runnable_;
};

TEST_F(PerturbationTest, AliasedOperandsHaveOneBlockEverywhere) {
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(1);
  auto timer = TimerOf(perturbation);
  ASSERT_TRUE(timer.ok()) << timer.status();
  ASSERT_TRUE((*timer)->Prepare(1).ok());
  ASSERT_TRUE((*timer)->TimeNs().ok());
  const auto* const y = static_cast<float*>(twice_->addresses[1]);
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(y[kCount - 1], 2);
  EXPECT_EQ(twice_->addresses[0], operands_.addresses(0)[0]);
  EXPECT_EQ(operands_.y()[0], 0);  // the operand itself was not touched
}

TEST_F(PerturbationTest, CopiesLieAtTheOffset) {
  proto::Perturbation perturbation;
  perturbation.set_pages(proto::Perturbation::SMALL);
  perturbation.set_offset_bytes(4);
  auto timer = TimerOf(perturbation);
  ASSERT_TRUE(timer.ok()) << timer.status();
  ASSERT_TRUE((*timer)->Prepare(1).ok());
  ASSERT_TRUE((*timer)->TimeNs().ok());
  for (void* const address : twice_->addresses) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 64, 4u);
  }
}

TEST_F(PerturbationTest, AnOperandThatIsNotThereIsAnError) {
  proto::Perturbation perturbation;
  perturbation.add_aliased_operands(2);
  EXPECT_EQ(TimerOf(perturbation).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PerturbationTest, AProfileCountsLoopsAndPages) {
  const auto metrics = ProfileCpuCalls(*runnable_, operands_, *device_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  std::map<std::string, double> values;
  for (const auto& metric : *metrics) {
    values[metric.metric()] = metric.values(0);
  }
  EXPECT_EQ(values["parallel_loops"], 2);
  EXPECT_EQ(values["page_visits:0"], kCount * 4 / 4096);
  EXPECT_EQ(values["pages_visited:1"], kCount * 4 / 4096);
  EXPECT_GE(values["slowest_thread_ns"], values["mean_thread_ns"]);
}

}  // namespace
}  // namespace optrail::ops
