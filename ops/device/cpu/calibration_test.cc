#include "ops/device/cpu/calibration.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "ops/device/cpu/fingerprint.h"

namespace optrail::ops {
namespace {

TEST(Calibration, TimesEveryLevelAndCountsReadings) {
  proto::Hardware hardware = CpuHardware();
  hardware.set_l1d_bytes(32 << 10);
  hardware.set_l2_bytes(1 << 20);
  hardware.set_l3_bytes(32 << 20);
  Calibration calibration(hardware);
  calibration.Run(2);
  calibration.Run(3);
  proto::Conditions conditions;
  calibration.Fill(&conditions);
  std::map<std::string, proto::Calibration> loops;
  for (const proto::Calibration& loop : conditions.calibrations()) {
    EXPECT_GT(loop.time_ns(), 0) << loop.loop();
    EXPECT_EQ(loop.readings(), 5) << loop.loop();
    EXPECT_GT(loop.fastest_ns(), 0) << loop.loop();
    EXPECT_LE(loop.fastest_ns(), loop.time_ns()) << loop.loop();
    loops[loop.loop()] = loop;
  }
  EXPECT_EQ(loops.count("vector"), 1);
  EXPECT_EQ(loops.count("l1"), 1);
  EXPECT_EQ(loops.count("l2"), 1);
  EXPECT_EQ(loops.count("l3"), 1);
  if (CanFlushLines()) {
    EXPECT_EQ(loops.count("memory"), 1);
  }
}

TEST(Calibration, ALevelThatIsNotThereHasNoLoop) {
  proto::Hardware hardware;
  Calibration calibration(hardware);
  calibration.Run(1);
  proto::Conditions conditions;
  calibration.Fill(&conditions);
  EXPECT_GT(conditions.calibrations_size(), 0);
  for (const proto::Calibration& loop : conditions.calibrations()) {
    EXPECT_NE(loop.loop(), "l3");
  }
}

TEST(Calibration, ForgetsReadingsThatWereTold) {
  Calibration calibration(CpuHardware());
  calibration.Run(1);
  calibration.Forget();
  proto::Conditions conditions;
  calibration.Fill(&conditions);
  EXPECT_EQ(conditions.calibrations_size(), 0);
}

}  // namespace
}  // namespace optrail::ops
