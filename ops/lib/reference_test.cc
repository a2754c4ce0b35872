#include "ops/lib/reference.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

std::vector<double> Random(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(count);
  for (double& value : values) value = rng.Gaussian();
  return values;
}

// Sums go through k in order, whatever is done beside them: results do not
// depend on threads and tiles, not even in their last bit.
TEST(ReferenceProductTest, IsTheSumInOrderForAnyShape) {
  for (const int64_t m : {1, 2, 33, 70}) {
    for (const int64_t n : {1, 15, 16, 17, 37, 513, 1040}) {
      for (const int64_t k : {1, 63, 64, 65, 200}) {
        const std::vector<double> a = Random(m * k, 1);
        const std::vector<double> b = Random(k * n, 2);
        std::vector<double> expected(m * n);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t p = 0; p < k; ++p) {
            for (int64_t j = 0; j < n; ++j) {
              expected[i * n + j] += a[i * k + p] * b[p * n + j];
            }
          }
        }
        ASSERT_EQ(ReferenceProduct(m, n, k, a, b), expected)
            << m << " x " << n << " x " << k;
      }
    }
  }
}

}  // namespace
}  // namespace optrail::ops
