#include "tuning/store/tuned_entry.h"

#include <string>

#include "base/text/textproto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

proto::TunedConfig Entry() {
  proto::TunedConfig tuned;
  tuned.set_shape("n=4/f32");
  tuned.set_config("u=2");
  tuned.set_threads(1);
  tuned.set_cache_mode(proto::HOT);
  tuned.set_kernel_id("0123456789abcdef");
  tuned.set_time_ns(100);
  tuned.set_default_time_ns(150);
  tuned.set_processes(20);
  tuned.set_session_id("20261123T131515Z-ed0f38600890");
  tuned.mutable_proof()->set_claimed(true);
  tuned.mutable_proof()->set_gain_high(0.5);
  tuned.mutable_proof()->set_metric("time");
  *tuned.mutable_proof()->mutable_candidate() = *ParseConfig("u=2");
  tuned.mutable_proof()->add_candidate_measurements();
  return tuned;
}

TEST(TunedEntryTest, AWinnerKeepsItsProofWithoutKnobsAndMeasurements) {
  proto::TunedConfig tuned = Entry();
  ShortenEntry(&tuned);
  EXPECT_TRUE(tuned.proof().claimed());
  EXPECT_FALSE(tuned.proof().has_candidate());
  EXPECT_EQ(tuned.candidate(), "");
  EXPECT_EQ(tuned.proof().candidate_measurements_size(), 0);
  EXPECT_EQ(tuned.proof().metric(), "");
  EXPECT_EQ(SpeedUpOverDefault(tuned), 1.5);
}

TEST(TunedEntryTest, ACandidateOtherThanTheConfigIsOneLine) {
  proto::TunedConfig tuned = Entry();
  *tuned.mutable_proof()->mutable_candidate() = *ParseConfig("u=4,a=true");
  ShortenEntry(&tuned);
  EXPECT_EQ(tuned.candidate(), "a=true,u=4");
}

TEST(TunedEntryTest, ADefaultThatStayedIsAMarker) {
  proto::TunedConfig tuned = Entry();
  tuned.set_default_time_ns(100);
  tuned.mutable_proof()->set_claimed(false);
  ShortenEntry(&tuned);
  EXPECT_TRUE(tuned.ties());
  EXPECT_EQ(tuned.gain_at_most(), 0.5);
  EXPECT_EQ(tuned.config(), "u=2");
  EXPECT_EQ(tuned.time_ns(), 100);
  EXPECT_EQ(tuned.session_id(), "20261123T131515Z-ed0f38600890");
  EXPECT_FALSE(tuned.has_proof());
  EXPECT_EQ(tuned.processes(), 0);
  EXPECT_EQ(SpeedUpOverDefault(tuned), 1);
}

TEST(TunedEntryTest, WithoutASessionNothingIsLost) {
  proto::TunedConfig tuned = Entry();
  tuned.set_default_time_ns(100);
  tuned.mutable_proof()->set_claimed(false);
  tuned.clear_session_id();
  ShortenEntry(&tuned);
  EXPECT_FALSE(tuned.ties());
  EXPECT_TRUE(tuned.has_proof());
}

TEST(TunedEntryTest, FilesOfEarlierVersionsAreReadAndWrittenShort) {
  proto::TunedConfigs file;
  file.set_operator_name("add");
  file.set_hardware_id("amd-epyc-zen5-1c");
  file.set_device_kind(proto::CPU);
  *file.add_tuned() = Entry();
  const std::string before = FormatTunedConfigs(file);
  EXPECT_THAT(before, HasSubstr("candidate {"));
  const auto read = ParseTunedConfigs(before, "f");
  ASSERT_TRUE(read.ok()) << read.status();
  const std::string after = FormatTunedConfigs(*read);
  EXPECT_THAT(after, Not(HasSubstr("candidate")));
  const auto again = ParseTunedConfigs(after, "f");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatTunedConfigs(*again), after);
}

proto::TunedConfigs Compared(double ratio_high) {
  proto::TunedConfigs configs;
  configs.set_operator_name("add");
  configs.set_hardware_id("amd-epyc-zen4-2c");
  configs.set_device_kind(proto::CPU);
  proto::BestBackend& best = *configs.add_best();
  best.set_shape("n=4/f32");
  best.set_threads(1);
  best.set_cache_mode(proto::HOT);
  best.set_run_id("20261123T131515Z-ed0f38600890");
  best.set_date("2026-11-23");
  for (const char* backend : {"", "onednn"}) {
    proto::BestBackend::Entry& entry = *best.add_entries();
    entry.set_backend(backend);
    entry.set_id("0123456789abcdef");
    entry.set_config("u=2");
    entry.set_time_ns(100);
    entry.set_ratio(1);
    entry.set_ratio_low(1);
    entry.set_ratio_high(ratio_high);
  }
  return configs;
}

TEST(TunedEntryTest, WhatFollowsFromTheRestIsNotWritten) {
  const std::string text = FormatTunedConfigs(Compared(1));
  EXPECT_THAT(text, Not(HasSubstr("date")));
  // The second's alone.
  EXPECT_EQ(text.find("ratio_low"), text.rfind("ratio_low"));
  const auto read = ParseTunedConfigs(text, "file");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintTextProto(*read), PrintTextProto(Compared(1)));
}

TEST(TunedEntryTest, WhatDoesNotFollowIsWritten) {
  proto::TunedConfigs configs = Compared(1.5);
  configs.mutable_best(0)->set_date("2026-11-24");  // after midnight
  const std::string text = FormatTunedConfigs(configs);
  EXPECT_THAT(text, HasSubstr("2026-11-24"));
  EXPECT_NE(text.find("ratio_low"), text.rfind("ratio_low"));
  const auto read = ParseTunedConfigs(text, "file");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintTextProto(*read), PrintTextProto(configs));
}

TEST(TunedEntryTest, ARunThatEndsAfterMidnightKeepsItsDateAlone) {
  proto::TunedConfigs configs = Compared(1);
  configs.mutable_best(0)->set_date("2026-11-24");
  const std::string text = FormatTunedConfigs(configs);
  EXPECT_THAT(text, HasSubstr("2026-11-24"));
  // The second's alone.
  EXPECT_EQ(text.find("ratio_low"), text.rfind("ratio_low"));
  const auto read = ParseTunedConfigs(text, "file");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintTextProto(*read), PrintTextProto(configs));
}

}  // namespace
}  // namespace optrail::tuning
