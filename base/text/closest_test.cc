#include "base/text/closest.h"

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(ClosestTest, CountsWhatIsTypedDifferently) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
}

TEST(ClosestTest, NamesWhatAWordProbablyMeans) {
  const std::vector<std::string> names = {"matmul", "softmax", "layer_norm",
                                          "benchmark_format"};
  EXPECT_EQ(Closest("sofmax", names), "softmax");
  EXPECT_EQ(Closest("matmul", names), "matmul");
  EXPECT_EQ(Closest("norm", names), "layer_norm");
  EXPECT_EQ(Closest("format", names), "benchmark_format");
  EXPECT_EQ(Closest("soft", names), "softmax");
  EXPECT_EQ(Closest("attention", names), "");
  EXPECT_EQ(Closest("", names), "");
  EXPECT_EQ(Closest("x", {"y"}), "") << "nothing of it is the same";
  EXPECT_EQ(DidYouMean("sofmax", names, "--op="),
            "; did you mean --op=softmax?");
  EXPECT_EQ(DidYouMean("attention", names), "");
}

TEST(ClosestTest, SaysWhatWasExpected) {
  EXPECT_EQ(JoinWithOr({}), "");
  EXPECT_EQ(JoinWithOr({"a"}), "a");
  EXPECT_EQ(JoinWithOr({"a", "b", "c"}), "a, b or c");
  EXPECT_EQ(ExpectedOneOf("jsn", {"table", "json"}),
            "expected table or json; did you mean json?");
}

}  // namespace
}  // namespace optrail
