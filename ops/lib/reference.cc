#include "ops/lib/reference.h"

#include <algorithm>

#include "base/parallel_for.h"
#include "ops/core/data_type.h"

namespace optrail::ops {
namespace {

// Threads take longer to start than less.
constexpr double kParallelAbove = 1e8;

}  // namespace

void ForEachReference(int64_t count, double multiplications,
                      absl::FunctionRef<void(int64_t)> compute) {
  ParallelFor(count, multiplications > kParallelAbove ? 0 : 1, compute);
}

std::vector<double> ReferenceProduct(int64_t m, int64_t n, int64_t k,
                                     absl::Span<const double> a,
                                     absl::Span<const double> b) {
  // Blocks of b and rows of c stay in cache: 1024^3 takes half a second on one
  // core.
  constexpr int64_t kBlockRows = 32;
  constexpr int64_t kBlockColumns = 512;
  constexpr int64_t kBlockDepth = 64;
  std::vector<double> c(m * n);
  ForEachReference(
      (m + kBlockRows - 1) / kBlockRows,
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      [&](int64_t block) {
        const int64_t i0 = block * kBlockRows;
        const int64_t i_end = std::min(i0 + kBlockRows, m);
        for (int64_t j0 = 0; j0 < n; j0 += kBlockColumns) {
          const int64_t columns = std::min(kBlockColumns, n - j0);
          for (int64_t p0 = 0; p0 < k; p0 += kBlockDepth) {
            const int64_t p_end = std::min(p0 + kBlockDepth, k);
            for (int64_t i = i0; i < i_end; ++i) {
              double* c_row = &c[i * n + j0];
              for (int64_t p = p0; p < p_end; ++p) {
                const double a_ip = a[i * k + p];
                const double* b_row = &b[p * n + j0];
                for (int64_t j = 0; j < columns; ++j) {
                  c_row[j] += a_ip * b_row[j];
                }
              }
            }
          }
        }
      });
  return c;
}

std::vector<double> Transposed(int64_t rows, int64_t cols,
                               absl::Span<const double> x) {
  std::vector<double> y(rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[c * rows + r] = x[r * cols + c];
  }
  return y;
}

Tolerance Rounded(const Tolerance& computed, proto::DataType type) {
  if (type == proto::F32) return computed;
  const Rounding rounding = RoundingOf(type);
  // What is rounded is off by `computed` already.
  return {computed.absolute * (1 + rounding.relative) + rounding.absolute,
          computed.relative * (1 + rounding.relative) + rounding.relative};
}

}  // namespace optrail::ops
