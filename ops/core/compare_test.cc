#include "ops/core/compare.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Compare, NanAndInfinityAreRightOnlyWhereExpected) {
  const double nan = std::nan("");
  const auto error = [](double value, double expected) {
    return Compare(proto::F64, &value, {expected}, {1, 1})
        .max_error_in_tolerances;
  };
  EXPECT_EQ(error(nan, nan), 0);
  EXPECT_EQ(error(nan, 1), kInfinity);
  EXPECT_EQ(error(1, nan), kInfinity);
  EXPECT_EQ(error(kInfinity, kInfinity), 0);
  EXPECT_EQ(error(-kInfinity, kInfinity), kInfinity);
  EXPECT_EQ(error(kInfinity, 1), kInfinity);
  EXPECT_EQ(error(1, kInfinity), kInfinity);
  EXPECT_EQ(error(1e300, kInfinity), kInfinity);
}

TEST(Compare, CountsAndLocatesErrorsInUnitsOfTheTolerance) {
  const std::vector<double> values = {1, 2, 3.5, 4, 6};
  const std::vector<double> expected = {1, 2, 3, 4, 5};
  const CompareResult result =
      Compare(proto::F64, values.data(), expected, {0.1, 0});
  EXPECT_FALSE(result.ok());
  EXPECT_DOUBLE_EQ(result.max_error_in_tolerances, 10);
  EXPECT_EQ(result.wrong_count, 2);
  EXPECT_EQ(result.first_wrong_index, 2);
  EXPECT_EQ(result.first_wrong_value, 3.5);
  EXPECT_EQ(result.first_wrong_expected, 3);
  EXPECT_TRUE(Compare(proto::F64, values.data(), expected, {0, 0.25}).ok());
  EXPECT_TRUE(Compare(proto::F64, values.data(), values, {0, 0}).ok());
}

TEST(Compare, LocatesErrorsBeyondTheFirstPiece) {
  std::vector<float> values(5000, 1);
  values[4321] = 2;
  EXPECT_EQ(Compare(proto::F32, values.data(), std::vector<double>(5000, 1.0),
                    {0.5, 0})
                .first_wrong_index,
            4321);
}

}  // namespace
}  // namespace optrail::ops
