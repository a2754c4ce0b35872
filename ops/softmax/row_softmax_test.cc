#include "ops/softmax/row_softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace optrail::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = 12345.0f;

std::vector<double> Reference(const std::vector<float>& x) {
  double max = -std::numeric_limits<double>::infinity();
  for (const float v : x) max = std::max<double>(max, v);
  double sum = 0;
  for (const float v : x) sum += std::exp(v - max);
  std::vector<double> y;
  for (const float v : x) y.push_back(std::exp(v - max) / sum);
  return y;
}

class RowSoftmaxTest
    : public testing::TestWithParam<std::tuple<SoftmaxAlgorithm, int>> {
 protected:
  // Runs one row on every SIMD target; checks that nothing outside is written.
  template <class Check>
  void OnEveryTarget(const std::vector<float>& x, const Check& check) {
    const auto [algorithm, unroll] = GetParam();
    for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      SCOPED_TRACE(hwy::TargetName(target));
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().DeInit();
      const RowSoftmax softmax = FindRowSoftmax(algorithm, unroll);
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().DeInit();
      ASSERT_NE(softmax, nullptr);

      const auto cols = static_cast<int64_t>(x.size());
      std::vector<float> y(cols + 2, kGuard);
      // An exact copy, so that a sanitizer sees every read outside.
      const std::vector<float> input = x;
      softmax({input.data(), y.data() + 1, 1, cols, /*stream=*/false});
      EXPECT_EQ(y.front(), kGuard);
      EXPECT_EQ(y.back(), kGuard);
      check(std::vector<float>(y.begin() + 1, y.end() - 1));
    }
  }

  void ExpectMatchesReference(const std::vector<float>& x) {
    const std::vector<double> expected = Reference(x);
    const double relative =
        (8 + 2 * std::sqrt(static_cast<double>(x.size()))) * 0x1.0p-24;
    OnEveryTarget(x, [&](const std::vector<float>& y) {
      for (size_t j = 0; j < y.size(); ++j) {
        ASSERT_LE(std::abs(y[j] - expected[j]),
                  relative * expected[j] + 0x1.0p-126)
            << "x[" << j << "] = " << x[j] << " of " << x.size();
      }
    });
  }

  void ExpectAllNan(const std::vector<float>& x) {
    OnEveryTarget(x, [](const std::vector<float>& y) {
      for (const float v : y) EXPECT_TRUE(std::isnan(v)) << v;
    });
  }
};

TEST_P(RowSoftmaxTest, MatchesTheReferenceAtEveryLength) {
  Rng rng(1);
  for (int cols = 1; cols <= 150; ++cols) {
    std::vector<float> x(cols);
    for (float& v : x) v = static_cast<float>(rng.UniformReal() * 2 - 1);
    ExpectMatchesReference(x);
  }
}

TEST_P(RowSoftmaxTest, OneColumnIsOne) {
  for (const float v : {0.0f, -1e30f, 1e30f, 3.5f, -700.0f}) {
    OnEveryTarget({v},
                  [](const std::vector<float>& y) { EXPECT_EQ(y[0], 1.0f); });
  }
}

TEST_P(RowSoftmaxTest, HandlesAWideRangeOfLogits) {
  Rng rng(2);
  for (const double scale : {10.0, 100.0, 500.0}) {
    std::vector<float> x(333);
    // Whole multiples of 1/8: differences are exact, so that the result shows
    // the exponential's error and not that of rounding x - max.
    for (float& v : x) {
      v = static_cast<float>(
          std::round((rng.UniformReal() * 2 - 1) * scale * 8) / 8);
    }
    ExpectMatchesReference(x);
  }
}

TEST_P(RowSoftmaxTest, HandlesHugeLogits) {
  const float huge = std::numeric_limits<float>::max();
  ExpectMatchesReference({huge, huge, -huge, 0, 1});
  ExpectMatchesReference({-huge, -huge, -huge});
  std::vector<float> x(77, 1e20f);
  x[70] = 2e20f;
  ExpectMatchesReference(x);
}

TEST_P(RowSoftmaxTest, MinusInfinityHasNoWeight) {
  std::vector<float> x(70, -kInfinity);
  x[3] = 1;
  x[66] = 2;
  ExpectMatchesReference(x);
  x[3] = -kInfinity;
  ExpectMatchesReference(x);
}

TEST_P(RowSoftmaxTest, RowOfMinusInfinityIsNan) {
  for (const int cols : {1, 5, 16, 70}) {
    ExpectAllNan(std::vector<float>(cols, -kInfinity));
  }
}

TEST_P(RowSoftmaxTest, NanAndInfinitySpoilTheWholeRow) {
  for (const float bad : {kNan, kInfinity}) {
    for (const int at : {0, 1, 17, 64, 69}) {
      std::vector<float> x(70, 0.5f);
      x[at] = bad;
      ExpectAllNan(x);
    }
  }
}

TEST_P(RowSoftmaxTest, StreamingStoresTheSame) {
  const auto [algorithm, unroll] = GetParam();
  const RowSoftmax softmax = FindRowSoftmax(algorithm, unroll);
  constexpr int64_t kRows = 3;
  constexpr int64_t kCols = 80;
  Rng rng(3);
  std::vector<float> x(kRows * kCols);
  for (float& v : x) v = static_cast<float>(rng.UniformReal());
  alignas(64) float cached[kRows * kCols];
  alignas(64) float streamed[kRows * kCols];
  softmax({x.data(), cached, kRows, kCols, /*stream=*/false});
  softmax({x.data(), streamed, kRows, kCols, /*stream=*/true});
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    // Equal but for how the compiler contracts each loop.
    EXPECT_NEAR(streamed[i], cached[i], 1e-7 * cached[i]) << i;
  }
}

// vector_math-inl.h promises 1.5 ulp. A row {0, x} gives e^x / (1 + e^x), which
// for x < -25 is e^x times a constant within half an ulp of 1.
TEST_P(RowSoftmaxTest, ExponentialIsAccurate) {
  double worst_ulp = 0;
  for (float v = -87.2f; v < -25; v += 0.00917f) {
    const double expected = std::exp(static_cast<double>(v));
    OnEveryTarget({0.0f, v}, [&](const std::vector<float>& y) {
      int exponent = 0;
      std::frexp(expected, &exponent);
      worst_ulp = std::max(worst_ulp, std::abs(y[1] - expected) /
                                          std::ldexp(1.0, exponent - 24));
    });
  }
  EXPECT_LE(worst_ulp, 2.0);  // 1.5, and half from the final scaling
}

std::string ParamName(
    const testing::TestParamInfo<RowSoftmaxTest::ParamType>& info) {
  const auto [algorithm, unroll] = info.param;
  const std::string name = algorithm == SoftmaxAlgorithm::kThreePass
                               ? "ThreePass"
                           : algorithm == SoftmaxAlgorithm::kOnline ? "Online"
                                                                    : "TwoPass";
  return name + "Unroll" + std::to_string(unroll);
}

INSTANTIATE_TEST_SUITE_P(
    All, RowSoftmaxTest,
    testing::Combine(testing::Values(SoftmaxAlgorithm::kThreePass,
                                     SoftmaxAlgorithm::kOnline,
                                     SoftmaxAlgorithm::kTwoPass),
                     testing::Values(1, 2, 4)),
    ParamName);

TEST(FindRowSoftmax, KnowsOnlyWhatIsInstantiated) {
  EXPECT_EQ(FindRowSoftmax(SoftmaxAlgorithm::kOnline, 3), nullptr);
}

}  // namespace
}  // namespace optrail::ops
