#include "diagnosis/evaluation/case_counts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::diagnosis {
namespace {

using testing::HasSubstr;

Numbers WithLoss(double high) {
  Numbers numbers;
  numbers.Set(kPlantedLoss, {high / 2, 0, high}, "test");
  return numbers;
}

TEST(CaseCountsTest, CountsPlantedAndHealthyCases) {
  CaseCounts counts;
  EXPECT_TRUE(counts.Add("strided", WithLoss(.5), {"strided", "tlb"}));
  EXPECT_FALSE(counts.Add("strided", WithLoss(.5), {"tlb", "strided"}));
  EXPECT_TRUE(counts.Add("", Numbers(), {}));
  EXPECT_FALSE(counts.Add("", Numbers(), {"tlb"}));
  EXPECT_THAT(counts.Text(),
              HasSubstr("first cause right: 1 of 2; among the first two: 2; "
                        "healthy kernels left alone: 1 of 2; no loss here: 0"));
}

TEST(CaseCountsTest, ACauseWithoutALossIsCountedAsNamed) {
  CaseCounts counts;
  EXPECT_TRUE(counts.Add("misaligned", WithLoss(.05), {}));
  EXPECT_FALSE(counts.Add("misaligned", WithLoss(.05), {"scalar"}));
  EXPECT_TRUE(counts.Add("misaligned", WithLoss(.05), {"misaligned"}));
  EXPECT_THAT(counts.Text(), HasSubstr("first cause right: 0 of 0"));
  EXPECT_THAT(counts.Text(),
              HasSubstr("no loss here: 3, of which 2 named a cause"));
}

// A wrong cause is wrong whoever had the cores.
TEST(CaseCountsTest, ThreadsWithoutTheirCoresAreCountedApart) {
  CaseCounts counts;
  Numbers disturbed = WithLoss(.5);
  disturbed.Set("threads", 2, "test");
  disturbed.Set("disturbed_share", .7, "test");
  EXPECT_TRUE(counts.Add("imbalance", disturbed, {}));
  EXPECT_FALSE(counts.Add("imbalance", disturbed, {"scalar"}));
  EXPECT_THAT(counts.Text(), HasSubstr("first cause right: 0 of 1"));
  EXPECT_THAT(counts.Text(), HasSubstr("inconclusive: 1"));
}

// 9% may be 11%.
TEST(CaseCountsTest, ACaseThatMayBeALossCounts) {
  CaseCounts counts;
  EXPECT_FALSE(counts.Add("misaligned", WithLoss(.11), {}));
  EXPECT_EQ(counts.planted, 1);
  EXPECT_EQ(counts.no_loss, 0);
}

}  // namespace
}  // namespace optrail::diagnosis
