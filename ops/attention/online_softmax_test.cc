#include "ops/attention/online_softmax.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace optrail::ops {
namespace {

// The upper half of a float is a bfloat16.
float Widened(float value) { return value; }
float Widened(uint16_t value) {
  const uint32_t bits = uint32_t{value} << 16;
  float widened;
  std::memcpy(&widened, &bits, sizeof(widened));
  return widened;
}
void Draw(Rng& rng, float* value) {
  *value = static_cast<float>(2 * rng.UniformReal() - 1);
}
void Draw(Rng& rng, uint16_t* value) {
  float drawn;
  Draw(rng, &drawn);
  uint32_t bits;
  std::memcpy(&bits, &drawn, sizeof(bits));
  *value = static_cast<uint16_t>(bits >> 16);
}
template <class T>
std::vector<T> Random(Rng& rng, int64_t count) {
  std::vector<T> values(count);
  for (T& value : values) Draw(rng, &value);
  return values;
}

// Scores and sums of `rows` queries over `keys` keys of `d` values.
template <class T>
void Check(int64_t rows, int64_t keys, int64_t d) {
  SCOPED_TRACE(testing::Message()
               << rows << " queries, " << keys << " keys, d " << d);
  Rng rng(rows * 10000 + keys * 100 + d);
  const int64_t stride = keys + 3;
  const auto q = Random<float>(rng, rows * d);
  const auto k = Random<T>(rng, keys * d);
  constexpr float kUntouched = 77;
  std::vector<float> scores(rows * stride, kUntouched);
  ScoreKeys(q.data(), rows, k.data(), keys, d, scores.data(), stride);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < stride; ++j) {
      double expected = j < keys ? 0 : kUntouched;
      for (int64_t c = 0; j < keys && c < d; ++c) {
        expected += double{q[r * d + c]} * Widened(k[j * d + c]);
      }
      ASSERT_NEAR(scores[r * stride + j], expected, 1e-4) << r << ", " << j;
    }
  }
  const auto weights = Random<float>(rng, rows * stride);
  const auto before = Random<float>(rng, rows * d + 1);
  std::vector<float> y = before;
  SumValues(weights.data(), rows, stride, k.data(), keys, d, y.data());
  for (int64_t i = 0; i < rows * d; ++i) {
    double expected = before[i];
    for (int64_t j = 0; j < keys; ++j) {
      expected +=
          double{weights[i / d * stride + j]} * Widened(k[j * d + i % d]);
    }
    ASSERT_NEAR(y[i], expected, 1e-4) << i;
  }
  ASSERT_EQ(y.back(), before.back());
}

TEST(OnlineSoftmaxTest, FewQueriesOnEveryTarget) {
  int targets = 0;
  for (int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 11}) {
      for (const int64_t keys : {1, 5, 16}) {
        for (const int64_t d : {1, 3, 8, 17, 40, 64, 200}) {
          Check<float>(rows, keys, d);
          Check<uint16_t>(rows, keys, d);
        }
      }
    }
    ++targets;
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  EXPECT_GE(targets, 1);
}

}  // namespace
}  // namespace optrail::ops
