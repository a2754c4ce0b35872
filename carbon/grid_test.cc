#include "carbon/grid.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::carbon {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] = "zone,start,end,gco2e_per_kwh,kind\n";

std::string Error(const std::string& rows) {
  return std::string(
      ParseIntensity(absl::StrCat(kHeader, rows), "g.csv").status().message());
}

TEST(GridTest, MeansAreWeightedByTime) {
  const auto grid = ParseIntensity(
      absl::StrCat(kHeader,
                   "DE,2026-01-01T01:00:00Z,2026-01-01T02:00:00Z,300,average\n"
                   "DE,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,100,average\n"
                   "FR,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,50,average\n"),
      "g.csv");
  ASSERT_TRUE(grid.ok()) << grid.status();
  const int64_t midnight = *ParseTime("2026-01-01T00:00:00Z");
  EXPECT_DOUBLE_EQ(*grid->Mean("DE", midnight, midnight + 2 * kHourS), 200);
  EXPECT_DOUBLE_EQ(*grid->Mean("DE", midnight + 2700, midnight + 4500), 200);
  EXPECT_DOUBLE_EQ(*grid->Mean("DE", midnight + 10, midnight + 10), 100);
  EXPECT_THAT(*grid->Hourly("DE", midnight, 2), testing::ElementsAre(100, 300));
  EXPECT_THAT(
      std::string(
          grid->Mean("DE", midnight, midnight + 3 * kHourS).status().message()),
      HasSubstr("says nothing of zone DE at 2026-01-01T02:00:00Z"));
  EXPECT_THAT(
      std::string(grid->Mean("XX", midnight, midnight + 1).status().message()),
      HasSubstr("has no zone \"XX\", expected one of DE, FR"));
}

TEST(GridTest, HoursBeginWhereThoseOfTheZoneDo) {
  const auto grid = ParseIntensity(
      absl::StrCat(
          kHeader,
          "IN,2026-01-01T00:00:00+05:30,2026-01-01T01:00:00+05:30,3,average\n"
          "IN,2026-01-01T01:00:00+05:30,2026-01-01T02:00:00+05:30,1,average\n"
          "GB,2026-01-01T00:30:00Z,2026-01-01T01:00:00Z,3,average\n"
          "GB,2026-01-01T00:00:00Z,2026-01-01T00:30:00Z,1,average\n"
          "IE,2026-01-01T00:30:00Z,2026-01-01T01:00:00Z,3,average\n"
          "IE,2026-01-01T01:00:00Z,2026-01-01T01:30:00Z,1,average\n"
          "IE,2026-01-01T01:30:00Z,2026-01-01T02:00:00Z,1,average\n"
          "FR,2026-01-01T00:45:00Z,2026-01-01T01:00:00Z,3,average\n"
          "AU,2026-01-01T00:30:00Z,2026-01-01T02:30:00Z,3,average\n"
          "AU,2026-01-01T03:00:00Z,2026-01-01T04:00:00Z,3,average\n"
          "DE,2026-01-01T00:30:00Z,2026-01-01T01:00:00Z,3,average\n"
          "DE,2026-01-01T01:00:00Z,2026-01-01T02:00:00Z,3,average\n"
          "DE,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,1,average\n"),
      "g.csv");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->HourPhaseS("IN"), 1800);
  // Half hours begin at both, whichever is the first of the file, as quarters
  // do; a file may begin within an hour.
  EXPECT_EQ(grid->HourPhaseS("GB"), 0);
  EXPECT_EQ(grid->HourPhaseS("IE"), 0);
  EXPECT_EQ(grid->HourPhaseS("FR"), 0);
  EXPECT_EQ(grid->HourPhaseS("AU"), 0);
  EXPECT_EQ(grid->HourPhaseS("DE"), 0);
  EXPECT_EQ(grid->HourPhaseS("XX"), 0);
}

TEST(GridTest, TheExampleOfAnyZoneCanBeRead) {
  const int64_t start = *ParseTime("2026-01-01T00:00:00Z");
  const std::string zone = "D,E \"north\"";
  const auto grid =
      ParseIntensity(ExampleIntensity(zone, start, 2, 1), "g.csv");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->zones.count(zone), 1);
}

TEST(GridTest, ErrorsNameFileLineAndField) {
  EXPECT_THAT(Error("DE,2026-01-01,2026-01-01T01:00:00Z,1,average\n"),
              HasSubstr("g.csv:2: "));
  EXPECT_THAT(Error("DE,2026-01-01T01:00:00Z,2026-01-01T01:00:00Z,1,average\n"),
              HasSubstr("expected it after start"));
  for (const char* value : {"-1", "nan", "inf", "", "1e300"}) {
    EXPECT_THAT(Error(absl::StrCat("DE,2026-01-01T00:00:00Z,"
                                   "2026-01-01T01:00:00Z,",
                                   value, ",average\n")),
                HasSubstr("gco2e_per_kwh is"))
        << value;
  }
  EXPECT_THAT(Error("DE,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,1,guess\n"),
              HasSubstr("expected average or marginal"));
  EXPECT_THAT(Error("DE,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,1,average\n"
                    "DE,2026-01-01T01:00:00Z,2026-01-01T03:00:00Z,1,average\n"),
              HasSubstr("g.csv:3: overlaps line 2 of zone DE"));
  EXPECT_THAT(
      Error("DE,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,1,average\n"
            "DE,2026-01-01T01:00:00Z,2026-01-01T02:00:00Z,1,marginal\n"),
      HasSubstr("as in the lines before"));
  EXPECT_THAT(Error(""), HasSubstr("there is no line but the header"));
  EXPECT_FALSE(ParseIntensity("", "g.csv").ok());
  EXPECT_FALSE(ParseIntensity("a,b\n1,2\n", "g.csv").ok());
}

TEST(GridTest, PricesMayBeNegative) {
  const auto tariff = ParseTariff(
      "zone,start,end,price_per_kwh,currency\n"
      "DE,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,-.05,EUR\n",
      "t.csv");
  ASSERT_TRUE(tariff.ok()) << tariff.status();
  EXPECT_EQ(tariff->kind, "EUR");
}

TEST(GridTest, TheExampleIsAYearWithoutGapsAndTheSameForASeed) {
  const int64_t start = *ParseTime("2026-01-01T00:00:00Z");
  const std::string csv = ExampleIntensity("DE", start, 8760, 7);
  EXPECT_EQ(csv, ExampleIntensity("DE", start, 8760, 7));
  EXPECT_NE(csv, ExampleIntensity("DE", start, 8760, 8));
  const auto grid = ParseIntensity(csv, "example.csv");
  ASSERT_TRUE(grid.ok()) << grid.status();
  const auto hourly = grid->Hourly("DE", start, 8760);
  ASSERT_TRUE(hourly.ok()) << hourly.status();
  // Noon emits less than the evening, most of all in summer.
  double noon = 0, evening = 0;
  for (int day = 150; day < 240; ++day) {
    noon += (*hourly)[24 * day + 12] / 90;
    evening += (*hourly)[24 * day + 19] / 90;
  }
  EXPECT_LT(noon + 100, evening);
}

}  // namespace
}  // namespace optrail::carbon
