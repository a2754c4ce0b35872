#include "ops/device/cpu/energy.h"

#include <cstdio>
#include <cstdlib>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

class EnergyMeterTest : public testing::Test {
 protected:
  EnergyMeterTest() {
    std::string pattern = testing::TempDir() + "/powercap_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }

  void Zone(const std::string& zone, const std::string& name,
            int64_t energy_uj) {
    ASSERT_TRUE(CreateDirectories(JoinPath(root_, zone)).ok());
    Write(zone + "/name", name);
    Write(zone + "/energy_uj", std::to_string(energy_uj));
    Write(zone + "/max_energy_range_uj", "1000000");
  }

  void Write(const std::string& file, const std::string& text) {
    FILE* out = fopen(JoinPath(root_, file).c_str(), "w");
    ASSERT_NE(out, nullptr);
    fputs((text + "\n").c_str(), out);
    fclose(out);
  }

  std::string root_;
};

TEST_F(EnergyMeterTest, AddsPackagesAndNothingTwice) {
  Zone("intel-rapl:0", "package-0", 100'000);
  Zone("intel-rapl:0:0", "core", 50'000);
  Zone("intel-rapl:1", "package-1", 200'000);
  Zone("intel-rapl:2", "psys", 900'000);
  Zone("intel-rapl-mmio:0", "package-0", 100'000);
  const auto meter = MakeEnergyMeter(root_, "cpu", absl::ZeroDuration());
  ASSERT_TRUE(meter.ok()) << meter.status();
  ASSERT_TRUE((*meter)->Begin().ok());
  Zone("intel-rapl:0", "package-0", 400'000);
  Zone("intel-rapl:0:0", "core", 350'000);
  Zone("intel-rapl:1", "package-1", 250'000);
  Zone("intel-rapl:2", "psys", 999'000);
  const auto window = (*meter)->End(7);
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_EQ(window->metric(), "joules");
  EXPECT_DOUBLE_EQ(window->value(), .35);
  EXPECT_EQ(window->calls(), 7);
  EXPECT_TRUE(window->whole_device());
  EXPECT_EQ(window->check(), proto::UNCHECKED);
  EXPECT_EQ(window->source(), "RAPL, whole packages");
}

TEST_F(EnergyMeterTest, ACounterThatStandsStillOrGoesAwayIsNoJoules) {
  Zone("intel-rapl:0", "package-0", 100'000);
  const auto meter = MakeEnergyMeter(root_, "cpu", absl::ZeroDuration());
  ASSERT_TRUE(meter.ok()) << meter.status();
  ASSERT_TRUE((*meter)->Begin().ok());
  EXPECT_THAT(std::string((*meter)->End(1).status().message()),
              HasSubstr("stood still"));
  ASSERT_TRUE((*meter)->Begin().ok());
  Write("intel-rapl:0/energy_uj", "");
  EXPECT_THAT(std::string((*meter)->End(1).status().message()),
              HasSubstr("went away"));
}

TEST_F(EnergyMeterTest, CounterMayWrapAroundOnce) {
  Zone("intel-rapl:0", "package-0", 900'000);
  const auto meter = MakeEnergyMeter(root_, "cpu", absl::ZeroDuration());
  ASSERT_TRUE(meter.ok()) << meter.status();
  ASSERT_TRUE((*meter)->Begin().ok());
  Zone("intel-rapl:0", "package-0", 100'000);
  EXPECT_DOUBLE_EQ((*meter)->End(1)->value(), .2);
}

TEST_F(EnergyMeterTest, SaysWhyThereIsNone) {
  EXPECT_THAT(std::string(MakeEnergyMeter(root_ + "/no").status().message()),
              HasSubstr("unsupported here: "));
  EXPECT_THAT(std::string(MakeEnergyMeter(root_).status().message()),
              HasSubstr("unsupported here: no intel-rapl package under"));
  Zone("intel-rapl:0", "package-0", 1);
  Write("intel-rapl:0/energy_uj", "");
  EXPECT_THAT(std::string(MakeEnergyMeter(root_).status().message()),
              HasSubstr("energy_uj"));
}

}  // namespace
}  // namespace optrail::ops
