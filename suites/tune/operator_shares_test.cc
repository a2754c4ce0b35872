#include "suites/tune/operator_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OperatorShares, ThereIsOneGroupOfAllWithoutShares) {
  const auto shares = OperatorShares::Of({}, {"add", "matmul"});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fractions(), IsEmpty());
  EXPECT_EQ(shares->GroupOf("add"), 0);
  EXPECT_EQ(shares->FractionOf("add"), 1);
}

TEST(OperatorShares, OperatorsWithoutAShareHaveTheRestTogether) {
  const auto shares = OperatorShares::Of({{"matmul", .5}, {"softmax", .2}},
                                         {"matmul", "add", "softmax", "relu"});
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_THAT(shares->fractions(), ElementsAre(.5, .2, DoubleNear(.3, 1e-9)));
  EXPECT_EQ(shares->GroupOf("softmax"), 1);
  EXPECT_EQ(shares->GroupOf("add"), 2);
  EXPECT_EQ(shares->GroupOf("relu"), 2);
  EXPECT_DOUBLE_EQ(shares->FractionOf("matmul"), .5);
}

TEST(OperatorShares, ASumOfOneLeavesNothingForAnother) {
  EXPECT_TRUE(OperatorShares::Of({{"matmul", .9}, {"add", .1}}, {"add"}).ok());
  const auto shares =
      OperatorShares::Of({{"matmul", .9}, {"add", .1}}, {"add", "relu"});
  EXPECT_THAT(std::string(shares.status().message()),
              HasSubstr("leave nothing for relu; expected a share for it"));
}

}  // namespace
}  // namespace optrail::suites
