#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lib/vector_math_test.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/gelu-inl.h"
#include "ops/lib/simd-inl.h"
#include "ops/lib/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

// Computes it for one value, in every lane.
float NormalCdfOf(float x) {
  return hn::GetLane(NormalCdf(D(), hn::Set(D(), x)));
}
float GeluOf(float x) {
  return hn::GetLane(Gelu(D(), NormalCdfPieces::Get(), hn::Set(D(), x)));
}
float GeluOfSumOf(float x) {
  return hn::GetLane(GeluOfSum(D(), NormalCdfPieces::Get(), hn::Set(D(), x)));
}
float SigmoidOf(float x) { return hn::GetLane(Sigmoid(D(), hn::Set(D(), x))); }

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {

HWY_EXPORT(NormalCdfOf);
HWY_EXPORT(GeluOf);
HWY_EXPORT(GeluOfSumOf);
HWY_EXPORT(SigmoidOf);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Check>
void OnEveryTarget(const Check& check) {
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    check();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
}

TEST(NormalCdf, KeepsTheDigitsOfItsTail) {
  OnEveryTarget([] {
    double worst = 0;
    for (float x = -12.5f; x < 12.5f; x += 0.00719f) {
      const double expected = 0.5 * std::erfc(-x * M_SQRT1_2);
      // What rounding the exponent costs; of the rest 2.2 units are the
      // polynomial's, 3 the exponential's, the others come from their rounding.
      const double allowed = (x * x / 2 + 8) * 0x1.0p-24 * expected;
      worst = std::max(
          worst,
          std::abs(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(x) - expected) / allowed);
    }
    EXPECT_LE(worst, 1);
  });
}

TEST(NormalCdf, HasItsLimits) {
  OnEveryTarget([] {
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(kInfinity), 1.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(-kInfinity), 0.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(1e30f), 1.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(-1e30f), 0.0f);
    EXPECT_TRUE(std::isnan(HWY_DYNAMIC_DISPATCH(NormalCdfOf)(NAN)));
  });
}

TEST(Gelu, KeepsTheDigitsOfItsTail) {
  OnEveryTarget([] {
    double worst = 0;
    for (float x = -12.5f; x < 12.5f; x += 0.00719f) {
      const double expected = 0.5 * x * std::erfc(-x * M_SQRT1_2);
      const double allowed = (x * x / 2 + 9) * 0x1.0p-24 * std::abs(expected);
      worst =
          std::max(worst, std::abs(HWY_DYNAMIC_DISPATCH(GeluOf)(x) - expected) /
                              allowed);
    }
    EXPECT_LE(worst, 1);
  });
}

TEST(GeluOfSum, IsGoodToTheLastPlacesOfItsArgument) {
  OnEveryTarget([] {
    double worst = 0;
    for (float x = -40; x < 40; x += 0.00519f) {
      const double expected = 0.5 * x * std::erfc(-x * M_SQRT1_2);
      worst = std::max(
          worst, std::abs(HWY_DYNAMIC_DISPATCH(GeluOfSumOf)(x) - expected) /
                     std::abs(x));
    }
    EXPECT_LE(worst, 0x1.0p-22);
  });
}

TEST(Gelu, HasItsLimits) {
  OnEveryTarget([] {
    const auto check = [](const auto& gelu) {
      EXPECT_EQ(gelu(kInfinity), kInfinity);
      EXPECT_TRUE(std::isnan(gelu(-kInfinity)));
      EXPECT_TRUE(std::isnan(gelu(NAN)));
      EXPECT_EQ(gelu(1e30f), 1e30f);
      EXPECT_EQ(gelu(-1e30f), 0.0f);
      EXPECT_EQ(gelu(0.0f), 0.0f);
      // The end of the pieces.
      for (const float x : {5.8f, 5.9f, 40.0f}) EXPECT_EQ(gelu(x), x);
    };
    check([](float x) { return HWY_DYNAMIC_DISPATCH(GeluOf)(x); });
    check([](float x) { return HWY_DYNAMIC_DISPATCH(GeluOfSumOf)(x); });
  });
}

TEST(Sigmoid, IsGoodToFourUnitsInTheLastPlace) {
  OnEveryTarget([] {
    for (float x = -87; x < 87; x += 0.0173f) {
      const double expected = 1 / (1 + std::exp(-static_cast<double>(x)));
      ASSERT_NEAR(HWY_DYNAMIC_DISPATCH(SigmoidOf)(x), expected,
                  8 * 0x1.0p-24 * expected)
          << x;
    }
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(SigmoidOf)(kInfinity), 1.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(SigmoidOf)(-kInfinity), 0.0f);
    EXPECT_TRUE(std::isnan(HWY_DYNAMIC_DISPATCH(SigmoidOf)(NAN)));
  });
}

}  // namespace
}  // namespace optrail::ops
#endif  // HWY_ONCE
