#include "tuning/proto/numerics_text.h"

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

TEST(NumericsText, IsReadAsItWasWritten) {
  for (const char* text : {"", "0f3a11c2d4e5", "0f3a11c2d4e5, batch-invariant",
                           "0f3a11c2d4e5, batch-dependent"}) {
    EXPECT_EQ(NumericsText(ParseNumerics(text)), text);
  }
  EXPECT_EQ(NumericsText({"", true}), "");
}

TEST(NumericsText, BitsAreComparedWithoutTheRest) {
  EXPECT_TRUE(SameBits("0f3a11c2d4e5", "0f3a11c2d4e5, batch-invariant"));
  EXPECT_FALSE(SameBits("0f3a11c2d4e5", "0f3a11c2d4e6"));
  EXPECT_FALSE(SameBits("", ""));
}

TEST(NumericsText, BatchInvarianceIsKnownOrNot) {
  EXPECT_TRUE(IsBatchInvariant("0f3a11c2d4e5, batch-invariant"));
  EXPECT_FALSE(IsBatchInvariant("0f3a11c2d4e5, batch-dependent"));
  EXPECT_FALSE(IsBatchInvariant("0f3a11c2d4e5"));
}

}  // namespace
}  // namespace optrail::tuning
