#include "base/text/percentage.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;

TEST(PercentageTest, TakesPercentagesAndFractions) {
  EXPECT_DOUBLE_EQ(*ParsePercentage("3%"), .03);
  EXPECT_DOUBLE_EQ(*ParsePercentage("+5%"), .05);
  EXPECT_DOUBLE_EQ(*ParsePercentage(" -2.5% "), -.025);
  EXPECT_DOUBLE_EQ(*ParsePercentage("150%"), 1.5);
  EXPECT_DOUBLE_EQ(*ParsePercentage(".03"), .03);
  EXPECT_DOUBLE_EQ(*ParsePercentage("0"), 0);
}

TEST(PercentageTest, AWholeNumberIsAsked) {
  EXPECT_THAT(ParsePercentage("3").status().message(),
              HasSubstr("is 3% meant?"));
  for (const char* bad : {"", "%", "x%", "nan", "inf", "nan%", "1e999%"}) {
    EXPECT_THAT(ParsePercentage(bad).status().message(),
                HasSubstr("expected a percentage such as 3%"))
        << bad;
  }
}

TEST(PercentageTest, AFlagReadsBackWhatItPrints) {
  for (const double fraction : {.03, .05, .07, .98, .001, 0.0, -.1, 1.5}) {
    Percentage read;
    std::string error;
    ASSERT_TRUE(
        AbslParseFlag(AbslUnparseFlag(Percentage{fraction}), &read, &error));
    EXPECT_NEAR(read.fraction, fraction, 1e-12);
  }
  EXPECT_EQ(AbslUnparseFlag(Percentage{.07}), "7%");
}

}  // namespace
}  // namespace optrail
