#include "ops/device/cpu/witnesses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Witnesses, ReadRunTimeAndDelay) {
  EXPECT_EQ(ParseRunTimeNs("123456 789 42\n"), 123456);
  EXPECT_EQ(ParseRunDelayNs("123456 789 42\n"), 789);
  EXPECT_EQ(ParseRunDelayNs(""), absl::nullopt);
  EXPECT_EQ(ParseRunDelayNs("123456"), absl::nullopt);
  EXPECT_EQ(ParseRunDelayNs("a b c"), absl::nullopt);
}

TEST(Witnesses, ReadStealPerCore) {
  EXPECT_THAT(ParseStealTicks("cpu  1 2 3 4 5 6 7 9 9 10\n"
                              "cpu0 1 2 3 4 5 6 7 8 9 10\n"
                              "cpu12 1 2 3 4 5 6 7 1 9 10\n"
                              "intr 5\n"
                              "cpu1 1 2 3 4 5 6 7 8 9 10\n"),
              UnorderedElementsAre(Pair(0, 8), Pair(12, 1)));
  EXPECT_THAT(ParseStealTicks("cpu  1 2 3 4\ncpu0 1 2 3 4\n"), IsEmpty());
  EXPECT_THAT(ParseStealTicks("intr 1"), IsEmpty());
}

TEST(Witnesses, ReadTheProcessorBehindAnyName) {
  const char rest[] =
      " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 "
      "27 28 29 30 31 32 33 34 35 3 0 0 0";
  EXPECT_EQ(ParseProcessor(std::string("17 (worker)") + rest), 3);
  EXPECT_EQ(ParseProcessor(std::string("17 (a) b (c 1 2)") + rest), 3);
  EXPECT_EQ(ParseProcessor("17 (worker) S 1 2"), absl::nullopt);
  EXPECT_EQ(ParseProcessor("17"), absl::nullopt);
}

}  // namespace
}  // namespace optrail::ops
