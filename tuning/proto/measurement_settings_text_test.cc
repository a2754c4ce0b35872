#include "tuning/proto/measurement_settings_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

proto::MeasurementSettings Settings() {
  proto::MeasurementSettings settings;
  settings.set_min_sample_ns(100'000);
  settings.set_max_samples(200);
  settings.set_target_half_width_fraction(.01);
  settings.set_max_config_bytes(int64_t{1} << 30);
  settings.set_processes(5);
  settings.set_binary_fingerprint("0123456789abcdef");
  return settings;
}

TEST(SettingsTexts, NameEveryKnownFieldWithItsUnit) {
  EXPECT_THAT(
      SettingsTexts(Settings()),
      ElementsAre("min sample 100 us", "max samples 200",
                  "target half width 1%", "processes 5", "max config 1.00 GiB",
                  "binary fingerprint 0123456789abcdef"));
  EXPECT_THAT(SettingsTexts(proto::MeasurementSettings()), IsEmpty());
}

TEST(DescribeSettingsChange, NamesWhatDiffersAndNothingElse) {
  proto::MeasurementSettings after = Settings();
  EXPECT_EQ(DescribeSettingsChange(Settings(), after), "");
  after.set_min_sample_ns(500'000);
  after.set_max_samples(300);
  EXPECT_EQ(DescribeSettingsChange(Settings(), after),
            "min sample 100 us -> 500 us; max samples 200 -> 300");
}

TEST(DescribeSettingsChange, SeesWhatTheTextRoundsAway) {
  proto::MeasurementSettings after = Settings();
  after.set_min_sample_ns(100'001);
  EXPECT_NE(DescribeSettingsChange(Settings(), after), "");
}

TEST(DescribeSettingsChange, TakesZeroForAValueAndAbsenceForIgnorance) {
  proto::MeasurementSettings zero = Settings();
  zero.set_target_half_width_fraction(0);
  EXPECT_EQ(DescribeSettingsChange(Settings(), zero),
            "target half width 1% -> 0%");
  proto::MeasurementSettings unknown = Settings();
  unknown.clear_target_half_width_fraction();
  EXPECT_EQ(DescribeSettingsChange(Settings(), unknown), "");
  EXPECT_EQ(DescribeSettingsChange(proto::MeasurementSettings(), zero), "");
}

TEST(DescribeSettingsChange, DoesNotMindProcessesAndBinaries) {
  proto::MeasurementSettings after = Settings();
  after.set_processes(12);
  after.set_binary_fingerprint("ffffffffffffffff");
  EXPECT_EQ(DescribeSettingsChange(Settings(), after), "");
  EXPECT_EQ(SettingsKey(Settings()), SettingsKey(after));
}

TEST(DescribeSettingsChange, DoesNotMindPatience) {
  proto::MeasurementSettings a, b;
  a.set_config_deadline_ns(10);
  b.set_config_deadline_ns(20);
  a.set_attempts_per_process(3);
  b.set_attempts_per_process(4);
  a.set_max_config_bytes(1);
  b.set_max_config_bytes(2);
  EXPECT_EQ(DescribeSettingsChange(a, b), "");
}

TEST(SettingsTexts, TellSharesFromTimesOfOneName) {
  proto::MeasurementSettings settings;
  settings.set_max_run_delay_fraction(0.02);
  settings.set_max_run_delay_ns(5000);
  settings.set_target_half_width_fraction(0.01);
  EXPECT_THAT(SettingsTexts(settings),
              ElementsAre("target half width 1%", "max run delay share 2%",
                          "max run delay 5.00 us"));
}

TEST(CommonSettings, AreWhatBothKnowAndAgreeOn) {
  proto::MeasurementSettings other = Settings();
  other.set_max_samples(50);
  other.clear_max_config_bytes();
  other.set_binary_fingerprint("ffffffffffffffff");
  EXPECT_THAT(
      SettingsTexts(CommonSettings(Settings(), other)),
      ElementsAre("min sample 100 us", "target half width 1%", "processes 5"));
  EXPECT_THAT(
      SettingsTexts(CommonSettings(proto::MeasurementSettings(), other)),
      IsEmpty());
}

TEST(SettingsKey, DiffersWhereSettingsDoAndIsEmptyForUnknown) {
  proto::MeasurementSettings other = Settings();
  other.set_max_samples(50);
  EXPECT_NE(SettingsKey(Settings()), SettingsKey(other));
  EXPECT_EQ(SettingsKey(proto::MeasurementSettings()), "");
}

TEST(IsAnotherBuild, NeedsToKnowBoth) {
  proto::MeasurementSettings other = Settings();
  EXPECT_FALSE(IsAnotherBuild(Settings(), other));
  other.set_binary_fingerprint("ffffffffffffffff");
  EXPECT_TRUE(IsAnotherBuild(Settings(), other));
  other.clear_binary_fingerprint();
  EXPECT_FALSE(IsAnotherBuild(Settings(), other));
}

}  // namespace
}  // namespace optrail::tuning
