#include "ops/lib/reference.h"

#include <algorithm>

#include "base/process/parallel_for.h"
#include "ops/core/data_type.h"

namespace optrail::ops {
namespace {

// Threads take longer to start than less.
constexpr double kParallelAbove = 1e7;

// Columns whose sums stay in registers.
constexpr int64_t kTileColumns = 16;

// c += a b, of one row of a and c, with `ldb` numbers from row to row of b.
void AddRowTimesTile(int64_t depth, const double* a, const double* b,
                     int64_t ldb, double* c) {
  double sums[kTileColumns];
  std::copy_n(c, kTileColumns, sums);
  for (int64_t p = 0; p < depth; ++p) {
    const double a_p = a[p];
    const double* const b_row = b + p * ldb;
    for (int64_t j = 0; j < kTileColumns; ++j) sums[j] += a_p * b_row[j];
  }
  std::copy_n(sums, kTileColumns, c);
}

}  // namespace

void ForEachReference(int64_t count, double multiplications,
                      absl::FunctionRef<void(int64_t)> compute) {
  ParallelFor(count, multiplications > kParallelAbove ? 0 : 1, compute);
}

std::vector<double> ReferenceProduct(int64_t m, int64_t n, int64_t k,
                                     absl::Span<const double> a,
                                     absl::Span<const double> b) {
  // Blocks of b and rows of c stay in cache.
  constexpr int64_t kBlockRows = 32;
  constexpr int64_t kBlockColumns = 512;
  constexpr int64_t kBlockDepth = 64;
  std::vector<double> c(m * n);
  const int64_t row_blocks = (m + kBlockRows - 1) / kBlockRows;
  const int64_t column_blocks = (n + kBlockColumns - 1) / kBlockColumns;
  ForEachReference(
      row_blocks * column_blocks,
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      [&](int64_t block) {
        const int64_t i0 = block / column_blocks * kBlockRows;
        const int64_t i_end = std::min(i0 + kBlockRows, m);
        const int64_t j0 = block % column_blocks * kBlockColumns;
        const int64_t j_end = std::min(j0 + kBlockColumns, n);
        for (int64_t p0 = 0; p0 < k; p0 += kBlockDepth) {
          const int64_t depth = std::min(kBlockDepth, k - p0);
          for (int64_t i = i0; i < i_end; ++i) {
            const double* const a_row = &a[i * k + p0];
            int64_t j = j0;
            for (; j + kTileColumns <= j_end; j += kTileColumns) {
              AddRowTimesTile(depth, a_row, &b[p0 * n + j], n, &c[i * n + j]);
            }
            for (int64_t p = 0; p < depth; ++p) {
              const double* const b_row = &b[(p0 + p) * n];
              for (int64_t l = j; l < j_end; ++l) {
                c[i * n + l] += a_row[p] * b_row[l];
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
