#include "ops/core/operand_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

TEST(RandomValues, HaveARangeAndHardOnesAmongThem) {
  OperandSpec spec{"x", proto::F32, {10000}, Role::kInput};
  spec.low = 10;
  spec.high = 30;
  spec.hard_values = {1e30, -600};
  for (const double value : RandomValues(spec, 1)) {
    EXPECT_GE(value, 10);
    EXPECT_LE(value, 30);
  }
  const std::vector<double> hard = RandomValues(spec, 1, Values::kHard);
  EXPECT_EQ(hard, RandomValues(spec, 1, Values::kHard));
  const auto has = [&](double value) {
    return std::count(hard.begin(), hard.end(), value) > 0;
  };
  EXPECT_TRUE(has(0));
  EXPECT_TRUE(has(static_cast<float>(0x1p-149)));
  EXPECT_TRUE(has(10));
  EXPECT_TRUE(has(30));
  EXPECT_TRUE(has(static_cast<float>(1e30)));
  EXPECT_TRUE(has(-600));
  int ties = 0;
  for (size_t i = 1; i < hard.size(); ++i) ties += hard[i] == hard[i - 1];
  EXPECT_GT(ties, 10);
}

// With a 600 in every row all other results of a softmax would be 0, and
// whatever is wrong with them unseen.
TEST(RandomValues, SomeRowsAreWithoutTheHardestOnes) {
  OperandSpec spec{"x", proto::F32, {140, 4096}, Role::kInput};
  spec.hard_values = {30, -30, 88, -88, 600, -600};
  const std::vector<double> hard = RandomValues(spec, 1, Values::kHard);
  std::map<double, int> rows;  // that have a value
  for (int64_t row = 0; row < 140; ++row) {
    const std::set<double> values(hard.begin() + row * 4096,
                                  hard.begin() + (row + 1) * 4096);
    for (const double value : spec.hard_values)
      rows[value] += values.count(value);
  }
  EXPECT_NEAR(rows[30], 120, 20);
  EXPECT_NEAR(rows[600], 40, 20);
  EXPECT_NEAR(rows[-600], 20, 19);
}

TEST(RandomValues, AreNormalWhereTheOperandIs) {
  OperandSpec spec{"a", proto::F32, {1000, 1001}, Role::kInput};
  spec.normal = true;
  const std::vector<double> values = RandomValues(spec, 1);
  double sums[5] = {};
  int beyond_two = 0;
  for (const double value : values) {
    double power = 1;
    for (double& sum : sums) sum += power, power *= value;
    beyond_two += std::abs(value) > 2;
  }
  for (double& sum : sums) sum /= static_cast<double>(values.size());
  EXPECT_NEAR(sums[1], 0, .005);
  EXPECT_NEAR(sums[2], 1, .005);
  EXPECT_NEAR(sums[3], 0, .02);
  EXPECT_NEAR(sums[4], 3, .05);
  EXPECT_NEAR(beyond_two, .0455 * static_cast<double>(values.size()), 1500);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 3.8);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -3.8);
}

// Each meets a row or a column of the other operand of a product, and costs
// many processors a hundred cycles there.
TEST(RandomValues, HaveFewDenormalsHoweverManyTheyAre) {
  const auto denormals = [](int64_t elements) {
    const OperandSpec spec{"x", proto::F32, {elements}, Role::kInput};
    const std::vector<double> values = RandomValues(spec, 1, Values::kHard);
    return std::count_if(values.begin(), values.end(), [](double value) {
      return value != 0 && std::abs(value) < 0x1p-126;
    });
  };
  for (const int64_t elements : {200, 2000, 100'000, 1 << 18}) {
    EXPECT_GE(denormals(elements), 4) << elements;
    EXPECT_LE(denormals(elements), 32) << elements;
  }
  // Each of eight pieces has that many.
  EXPECT_GE(denormals(1 << 21), 8 * 8);
  EXPECT_LE(denormals(1 << 21), 8 * 24);
}

TEST(RandomValues, AreFixedByTheSeedAndWithinTheirRange) {
  OperandSpec spec{"x", proto::F32, {10000}, Role::kInput};
  const std::vector<double> values = RandomValues(spec, 1);
  EXPECT_EQ(values, RandomValues(spec, 1));
  EXPECT_NE(values, RandomValues(spec, 2));
  for (const double value : values) {
    EXPECT_EQ(value, static_cast<float>(value));
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
  }
  spec.data_type = proto::I32;
  spec.index_limit = 7;
  for (const double value : RandomValues(spec, 1)) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 7);
    EXPECT_EQ(value, std::floor(value));
  }
}

}  // namespace
}  // namespace optrail::ops
