#include "ops/peers/interleaved.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

// Time is simulated: a call takes what the candidate says, times a disturbance
// that all candidates of a round share.
class FakeMachine {
 public:
  Candidate Make(const std::string& name, double call_ns) {
    return {name, [this, call_ns, name](int64_t calls) {
              order_ += name;
              return static_cast<double>(calls) * call_ns * slowdown_();
            }};
  }
  void SlowDown(std::function<double()> slowdown) { slowdown_ = slowdown; }
  const std::string& order() const { return order_; }

 private:
  std::function<double()> slowdown_ = [] { return 1.0; };
  std::string order_;
};

TEST(MeasureInterleaved, ReportsTimesPerCallAndSpeedups) {
  FakeMachine machine;
  const auto readings = MeasureInterleaved(
      {machine.Make("a", 1000), machine.Make("b", 500)}, {9, 1e6});
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_DOUBLE_EQ(readings[0].median_ns, 1000);
  EXPECT_DOUBLE_EQ(readings[0].speedup, 1);
  EXPECT_DOUBLE_EQ(readings[1].median_ns, 500);
  EXPECT_DOUBLE_EQ(readings[1].speedup, 2);
}

TEST(MeasureInterleaved, TakesTurnsAtBeingFirst) {
  FakeMachine machine;
  // A call is longer than a sample needs to be, so that one call calibrates.
  MeasureInterleaved({machine.Make("a", 2e6), machine.Make("b", 2e6)},
                     {4, 1e6});
  EXPECT_EQ(machine.order(),
            "ab"
            "abbaabba");
}

TEST(MeasureInterleaved, SlowPhasesOfTheMachineLeaveRatiosAlone) {
  FakeMachine machine;
  int samples = 0;
  // The machine becomes three times slower in the middle of the measurement.
  machine.SlowDown([&] { return ++samples > 12 ? 3.0 : 1.0; });
  const auto readings = MeasureInterleaved(
      {machine.Make("a", 2e6), machine.Make("b", 1e6)}, {11, 1e6});
  EXPECT_DOUBLE_EQ(readings[1].speedup, 2);
}

TEST(ToTable, ShowsRateAndSpeedup) {
  const std::string table =
      ToTable("matmul 2x2x2", {{"ours", 2000, 1900, 2100, 1800, 1.25}}, 4000,
              "GFLOP/s");
  EXPECT_THAT(table, testing::HasSubstr("matmul 2x2x2"));
  EXPECT_THAT(table, testing::HasSubstr("2.00"));
  EXPECT_THAT(table, testing::HasSubstr("1.250x"));
  EXPECT_THAT(table, testing::HasSubstr("GFLOP/s"));
}

}  // namespace
}  // namespace optrail::ops
