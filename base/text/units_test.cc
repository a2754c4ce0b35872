#include "base/text/units.h"

#include <cmath>

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

TEST(FormatPercent, HasTheDecimalsOfItsColumn) {
  EXPECT_EQ(FormatPercent(0.1234), "12.3%");
  EXPECT_EQ(FormatPercent(0.001234, 2), "0.12%");
  EXPECT_EQ(FormatPercent(-3, 0), "-300%");
  EXPECT_EQ(FormatPercent(-1e-9), "0.0%");
  EXPECT_EQ(FormatPercent(-.0006), "-0.1%");
}

TEST(FormatChange, HasItsSign) {
  EXPECT_EQ(FormatChange(0.1234), "+12.3%");
  EXPECT_EQ(FormatChange(-0.1), "-10.0%");
  EXPECT_EQ(FormatChange(0.00126, 2), "+0.13%");
}

TEST(FormatShortPercent, HasSignificantDigitsAndNoExponent) {
  EXPECT_EQ(FormatShortPercent(0.00347), "0.35%");
  EXPECT_EQ(FormatShortPercent(0.05), "5%");
  EXPECT_EQ(FormatShortPercent(0.1234), "12%");
  EXPECT_EQ(FormatShortPercent(0.996), "100%");
  EXPECT_EQ(FormatShortPercent(3.5), "350%");
  EXPECT_EQ(FormatShortPercent(-3.5), "-350%");
  EXPECT_EQ(FormatShortPercent(0.12345, 4), "12.35%");
}

}  // namespace
}  // namespace optrail
