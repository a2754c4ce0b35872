#include "ops/product/cpu/few_columns.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/product/cpu/short_sums.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

// C is in a wider matrix, whose other places stay as they are, and in one that
// is as wide.
void ExpectExact(const ProductSize& size, FewColumns way, Rng& rng) {
  const auto& [m, n, k] = size;
  const std::vector<float> a = WholeNumbers(m * k, rng);
  const std::vector<float> b = WholeNumbers(n * k, rng);
  const std::vector<float> shift = WholeNumbers(n, rng);
  for (const int64_t ldc : {n, n + 2}) {
    for (const bool transposed : {true, false}) {
      if (way == FewColumns::kLongSums && !transposed) continue;
      const bool shifts = way == FewColumns::kShortSums && ldc > n;
      const ShortSums strides = transposed ? ShortSums{1, k} : ShortSums{n, 1};
      std::vector<float> c(m * ldc, kGuard);
      if (way == FewColumns::kLongSums) {
        MultiplyFewColumns(size, a.data(), k, b.data(), k, c.data(), ldc);
      } else {
        MultiplyShortSums(size, a.data(), k, b.data(), strides,
                          shifts ? shift.data() : nullptr, c.data(), ldc);
      }
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float expected = shifts ? shift[j] : 0;
          for (int64_t p = 0; p < k; ++p) {
            expected += a[i * k + p] * b[p * strides.step + j * strides.column];
          }
          ASSERT_EQ(c[i * ldc + j], expected)
              << m << " x " << n << " x " << k << " at " << i << ", " << j;
        }
        for (int64_t j = n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], kGuard);
      }
    }
  }
}

TEST(FewColumns, IsExactForEveryRemainder) {
  Rng rng(1);
  for (int64_t m = 1; m <= 19; ++m) {
    for (int64_t n = 1; n <= 15; ++n) {
      for (const int64_t k : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 97, 131}) {
        ExpectExact({m, n, k}, FewColumns::kLongSums, rng);
      }
    }
  }
}

// Segments of A overlap, and its rows too.
TEST(FewColumns, SumsSegments) {
  Rng rng(2);
  const int64_t lda = 5, segment_step = 11;
  for (const int64_t count : {0, 1, 2, 5}) {
    for (const int64_t k : {1, 15, 16, 17, 64, 131}) {
      for (const int64_t m : {1, 3, 8, 15}) {
        for (int64_t n = 1; n <= 9; ++n) {
          const std::vector<float> a =
              WholeNumbers(m * lda + count * segment_step + k, rng);
          const std::vector<float> b = WholeNumbers(n * count * k + 1, rng);
          std::vector<float> c(m * n + 1, kGuard);
          MultiplyFewColumns({m, n, k}, a.data(), lda, b.data(), count * k,
                             c.data(), n, {count, segment_step});
          for (int64_t i = 0; i < m * n; ++i) {
            float expected = 0;
            for (int64_t p = 0; p < count * k; ++p) {
              expected += a[i / n * lda + p / k * segment_step + p % k] *
                          b[i % n * count * k + p];
            }
            ASSERT_EQ(c[i], expected)
                << m << " x " << n << " x " << count << " times " << k;
          }
          ASSERT_EQ(c.back(), kGuard);
        }
      }
    }
  }
}

TEST(FewColumns, ChoosesByTheLengthOfSegments) {
  EXPECT_TRUE(LongSumsOfSegmentsPay({10, 1, 64}, 3));
  EXPECT_TRUE(LongSumsOfSegmentsPay({10, 4, 300}, 3));
  EXPECT_FALSE(LongSumsOfSegmentsPay({10, 4, 3}, 9)) << "mostly empty vectors";
  EXPECT_FALSE(LongSumsOfSegmentsPay({10, 16, 300}, 3));
}

TEST(FewColumns, TransposesEveryRemainder) {
  for (int64_t n = 1; n <= 15; ++n) {
    for (const int64_t k : {1, 5, 15, 16, 17, 31, 32, 50}) {
      const int64_t ldb = n + 1;
      std::vector<float> b(k * ldb), to(n * k + 1, kGuard);
      for (int64_t i = 0; i < k * ldb; ++i) b[i] = static_cast<float>(i);
      TransposeFewColumns(b.data(), k, n, ldb, to.data());
      for (int64_t i = 0; i < n * k; ++i) {
        ASSERT_EQ(to[i], b[i % k * ldb + i / k]) << k << " x " << n;
      }
      ASSERT_EQ(to.back(), kGuard);
    }
  }
}

bool HasShortSums() {
  return FewColumnsFor({1000, 1, 4}, false) == FewColumns::kShortSums;
}

TEST(FewColumns, IsExactForShortSumsOfEveryRemainder) {
  if (!HasShortSums()) GTEST_SKIP() << "vectors of other than 16 lanes";
  Rng rng(1);
  for (const int64_t m : {1, 2, 7, 15, 16, 17, 31, 33, 64, 67}) {
    for (int64_t n = 1; n <= 8; ++n) {
      for (const int64_t k :
           {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 31, 66, 127, 128}) {
        ExpectExact({m, n, k}, FewColumns::kShortSums, rng);
      }
    }
  }
}

TEST(FewColumns, ChoosesByTheLengthOfSums) {
  EXPECT_EQ(FewColumnsFor({1000, 1, 1000}, false), FewColumns::kLongSums);
  EXPECT_EQ(FewColumnsFor({1000, 8, 1000}, true), FewColumns::kLongSums);
  EXPECT_EQ(FewColumnsFor({1000, 16, 1000}, false), FewColumns::kNone);
  EXPECT_EQ(FewColumnsFor({1000, 4, 8}, true),
            HasShortSums() ? FewColumns::kShortSums : FewColumns::kNone);
  EXPECT_EQ(FewColumnsFor({1, 8, 100}, true), FewColumns::kNone)
      << "a row of A";
}

// Every task transposes B again.
TEST(FewColumns, ChoosesByTheRowsOfATask) {
  if (!HasShortSums()) GTEST_SKIP() << "vectors of other than 16 lanes";
  EXPECT_EQ(FewColumnsFor({1000, 12, 1000}, true), FewColumns::kLongSums);
  EXPECT_EQ(FewColumnsFor({16, 12, 1000}, true), FewColumns::kNone);
  EXPECT_EQ(FewColumnsFor({16, 12, 1000}, false), FewColumns::kLongSums);
}

}  // namespace
}  // namespace optrail::ops
