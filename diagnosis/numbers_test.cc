#include "diagnosis/numbers.h"

#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

TEST(NumberTextTest, HasThreeDigitsAndNoExponentFromAThousandOn) {
  EXPECT_EQ(NumberText(.4312), "0.431");
  EXPECT_EQ(NumberText(-12.46), "-12.5");
  EXPECT_EQ(NumberText(999.4), "999");
  EXPECT_EQ(NumberText(999.5), "1000");
  EXPECT_EQ(NumberText(-999.6), "-1000");
  EXPECT_EQ(NumberText(4921.2), "4921");
}

}  // namespace
}  // namespace optrail::diagnosis
