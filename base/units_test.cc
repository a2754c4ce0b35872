#include "base/units.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(UnitsTest, FormatsDurations) {
  EXPECT_EQ(FormatDurationNs(0), "0.00 ns");
  EXPECT_EQ(FormatDurationNs(0.8), "0.800 ns");
  EXPECT_EQ(FormatDurationNs(1.234), "1.23 ns");
  EXPECT_EQ(FormatDurationNs(12345), "12.3 us");
  EXPECT_EQ(FormatDurationNs(999.4), "999 ns");
  EXPECT_EQ(FormatDurationNs(999.6), "1.00 us");
  EXPECT_EQ(FormatDurationNs(1.5e9), "1.50 s");
  EXPECT_EQ(FormatDurationNs(125e9), "2 min 5 s");
  EXPECT_EQ(FormatDurationNs(12000e9), "3 h 20 min");
  EXPECT_EQ(FormatDurationNs(3599.9e9), "1 h 0 min");
  EXPECT_EQ(FormatDurationNs(-12345), "-12.3 us");
  EXPECT_EQ(FormatDurationNs(std::nan("")), "nan ns");
}

TEST(UnitsTest, FormatsBytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(2.0 * (1 << 30)), "2.00 GiB");
  EXPECT_EQ(FormatBytes(1024.0 * 1024 - 1), "1.00 MiB");
}

TEST(UnitsTest, FormatsRatesAndCounts) {
  EXPECT_EQ(FormatRate(2.5e9, "FLOP/s"), "2.50 GFLOP/s");
  EXPECT_EQ(FormatRate(999.7e6, "B/s"), "1.00 GB/s");
  EXPECT_EQ(FormatRate(3, "B/s"), "3.00 B/s");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234), "1,234");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
  EXPECT_EQ(FormatCount(12345678), "12,345,678");
  EXPECT_EQ(FormatRatioAsPercent(1.1234), "+12.3%");
  EXPECT_EQ(FormatRatioAsPercent(0.9), "-10.0%");
}

TEST(UnitsTest, ParsesDurations) {
  EXPECT_EQ(ParseDuration("90s").value(), absl::Seconds(90));
  EXPECT_EQ(ParseDuration("2m").value(), absl::Minutes(2));
  EXPECT_EQ(ParseDuration("1h30m").value(), absl::Minutes(90));
  EXPECT_EQ(ParseDuration(" 250ms ").value(), absl::Milliseconds(250));
  EXPECT_EQ(ParseDuration("1.5us").value(), absl::Nanoseconds(1500));
}

TEST(UnitsTest, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"", "90", "0", "-5s", "s", "2 minutes", "inf", "1d", "5s5"}) {
    const absl::Status status = ParseDuration(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), testing::HasSubstr("expected"));
  }
}

}  // namespace
}  // namespace optrail
