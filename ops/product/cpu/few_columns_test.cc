#include "ops/product/cpu/few_columns.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr float kGuard = 12345.0f;

// Sums of whole numbers are exact in any order.
std::vector<float> WholeNumbers(int64_t count, Rng& rng) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(rng.UniformInt(9) - 4);
  return values;
}

TEST(FewColumns, IsExactForEveryRemainder) {
  Rng rng(1);
  for (int64_t m = 1; m <= 19; ++m) {
    for (int64_t n = 1; n <= 9; ++n) {
      for (const int64_t k : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 97, 131}) {
        const std::vector<float> a = WholeNumbers(m * k, rng);
        const std::vector<float> columns = WholeNumbers(n * k, rng);
        // C is in a wider matrix, whose other places stay as they are.
        const int64_t ldc = n + 2;
        std::vector<float> c(m * ldc, kGuard);
        MultiplyFewColumns({m, n, k}, a.data(), k, columns.data(), k, c.data(),
                           ldc);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float expected = 0;
            for (int64_t p = 0; p < k; ++p) {
              expected += a[i * k + p] * columns[j * k + p];
            }
            ASSERT_EQ(c[i * ldc + j], expected)
                << m << " x " << n << " x " << k << " at " << i << ", " << j;
          }
          for (int64_t j = n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], kGuard);
        }
      }
    }
  }
}

TEST(FewColumns, PaysForFewColumnsAndLongSums) {
  EXPECT_TRUE(FewColumnsPay({1000, 1, 1000}));
  EXPECT_TRUE(FewColumnsPay({1000, 8, 1000}));
  EXPECT_FALSE(FewColumnsPay({1000, 16, 1000}));
  EXPECT_FALSE(FewColumnsPay({1000, 8, 8}));
  EXPECT_FALSE(FewColumnsPay({1, 8, 100})) << "a row of A";
}

}  // namespace
}  // namespace optrail::ops
