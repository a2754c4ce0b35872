#include "tracker/series/similar.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(NameSimilarity, CountsEdits) {
  EXPECT_EQ(NameSimilarity("BM_Sort", "BM_Sort"), 1);
  EXPECT_DOUBLE_EQ(NameSimilarity("kitten", "sitting"), 1 - 3 / 7.);
  EXPECT_EQ(NameSimilarity("abc", "xyz"), 0);
  EXPECT_EQ(NameSimilarity("", ""), 1);
}

TEST(NameSimilarity, OtherNumbersAreAnotherBenchmark) {
  EXPECT_EQ(NameSimilarity("BM_Sort/512", "BM_Sort/513"), 0);
  EXPECT_GT(NameSimilarity("BM_Sort/512", "BM_StableSort/512"), .6);
}

TEST(MatchRenamed, PairsMutuallyBestNames) {
  EXPECT_THAT(MatchRenamed({"BM_SortInts/64", "BM_Hash/64"},
                           {"BM_HashMap/64", "BM_SortIntegers/64"}),
              ElementsAre(Pair(0, 1), Pair(1, 0)));
  EXPECT_THAT(MatchRenamed({"BM_Sort"}, {"BM_Convolution"}), IsEmpty());
  EXPECT_THAT(MatchRenamed({}, {"a"}), IsEmpty());
  // Two equally good candidates: the first.
  EXPECT_THAT(MatchRenamed({"BM_Sort"}, {"BM_SortA", "BM_SortB"}),
              ElementsAre(Pair(0, 0)));
}

}  // namespace
}  // namespace optrail::tracker
