#include "tracker/compare/process_log.h"

#include <cmath>

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

// Two samples, one of them contended, and six loops whose medians are 100, 200,
// ... ns and whose fastest readings, if any, 10 ns less.
proto::Measurement Measured(bool fastest) {
  proto::Measurement measurement;
  measurement.set_median_ns(1000);
  measurement.set_calls_per_sample(1);
  measurement.add_sample_ns(1000);
  measurement.add_sample_ns(1300);
  measurement.add_contended_samples(1);
  double time_ns = 0;
  for (const char* name :
       {"arithmetic", "vector", "l1", "l2", "l3", "memory"}) {
    proto::Calibration* loop =
        measurement.mutable_conditions()->add_calibrations();
    loop->set_loop(name);
    loop->set_time_ns(time_ns += 100);
    if (fastest) loop->set_fastest_ns(time_ns - 10);
  }
  return measurement;
}

TEST(ProcessLog, AnOlderRecordsMachineIsOfMedians) {
  const auto log = ProcessLogOf(Measured(false), "time");
  ASSERT_TRUE(log.has_value());
  ASSERT_TRUE(log->machine.has_value());
  EXPECT_FALSE(log->machine->fastest);
  const auto& values = log->machine->values;
  EXPECT_DOUBLE_EQ(values[MachineState::kClock], std::log(100));
  EXPECT_DOUBLE_EQ(values[MachineState::kL1],
                   std::log(300 * 400) / 2 - std::log(100));
  EXPECT_EQ(values[MachineState::kL1], values[MachineState::kL2]);
  EXPECT_DOUBLE_EQ(values[MachineState::kL3], std::log(500 * 600) / 2);
  EXPECT_EQ(values[MachineState::kL3], values[MachineState::kMemory]);
  EXPECT_DOUBLE_EQ(values[MachineState::kContended], .5);
}

TEST(ProcessLog, OneThatAskedBetweenSamplesIsOfFastestReadings) {
  const auto log = ProcessLogOf(Measured(true), "time");
  ASSERT_TRUE(log.has_value());
  ASSERT_TRUE(log->machine.has_value());
  EXPECT_TRUE(log->machine->fastest);
  const auto& values = log->machine->values;
  EXPECT_DOUBLE_EQ(values[MachineState::kClock], std::log(190));
  EXPECT_DOUBLE_EQ(values[MachineState::kL1], std::log(290. / 190));
  EXPECT_DOUBLE_EQ(values[MachineState::kL2], std::log(390. / 190));
  EXPECT_DOUBLE_EQ(values[MachineState::kL3], std::log(490));
  EXPECT_DOUBLE_EQ(values[MachineState::kMemory], std::log(590));
  EXPECT_EQ(values[MachineState::kContended], 0);
}

TEST(ProcessLog, WithoutOneOfTheLoopsTheMachineIsNotKnown) {
  for (int missing = 0; missing < 6; ++missing) {
    proto::Measurement measurement = Measured(true);
    measurement.mutable_conditions()->mutable_calibrations(missing)->set_loop(
        "of a later version");
    const auto log = ProcessLogOf(measurement, "time");
    ASSERT_TRUE(log.has_value());
    // Either clock will do.
    EXPECT_EQ(log->machine.has_value(), missing < 2) << missing;
    if (missing == 1) {
      EXPECT_FALSE(log->machine->fastest);
    }
  }
}

TEST(ProcessLog, LoopsThatCannotBeTrueSayNothing) {
  for (const double wrong : {0., -1., std::nan(""), HUGE_VAL}) {
    proto::Measurement measurement = Measured(false);
    measurement.mutable_conditions()->mutable_calibrations(4)->set_time_ns(
        wrong);
    EXPECT_FALSE(ProcessLogOf(measurement, "time")->machine.has_value())
        << wrong;
  }
}

}  // namespace
}  // namespace optrail::tracker
