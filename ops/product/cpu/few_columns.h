#ifndef OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_

// Products of few columns. Vectors of C's columns would be mostly empty.
// For long sums, a vector holds partial sums along k instead, of a row of A
// times a column of B: k / lanes multiplications for each place of C and not k
// for each row. For short ones it holds a step of sixteen rows, transposed in
// registers.
//
//   if (FewColumnsFor(size, /*transposes=*/false) == FewColumns::kLongSums) {
//     MultiplyFewColumns(size, a, k, b_transposed, k, c, n);
//   }
//
// Thread-safe.

#include <cstdint>

#include "ops/product/cpu/blocking.h"

namespace optrail::ops {

enum class FewColumns {
  kNone,       // tiles are faster
  kLongSums,   // MultiplyFewColumns
  kShortSums,  // MultiplyShortSums
};

// The way of the least estimated time, of a task. `transposes`: long sums would
// need TransposeFewColumns first.
FewColumns FewColumnsFor(const ProductSize& task, bool transposes);

// C = A * B. Rows of A are `lda` floats apart, columns of B, each in one piece,
// `ldb`, rows of C `ldc`.
void MultiplyFewColumns(const ProductSize& size, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc);

// Makes the B that MultiplyFewColumns reads of one whose rows are `ldb` floats
// apart: to[j * k + p] = b[p * ldb + j].
void TransposeFewColumns(const float* b, int64_t k, int64_t n, int64_t ldb,
                         float* to);

// Floats from one step of B to the next, and from one column to the next.
struct ShortSums {
  static constexpr int64_t kMostSteps = 128;

  int64_t step = 0;
  int64_t column = 0;
};

// Returns whether MultiplyShortSums serves here: at most 8 columns, kMostSteps
// steps, sixteen rows at least.
bool HasShortSums(const ProductSize& size);

// C = A * B + shift (nullptr: 0) of each column, for at most 8 columns,
// kMostSteps steps and any number of rows; HasShortSums says from which number
// on it is meant to be used. Ends the program where vectors have other than
// sixteen lanes.
void MultiplyShortSums(const ProductSize& size, const float* a, int64_t lda,
                       const float* b, const ShortSums& strides,
                       const float* shift, float* c, int64_t ldc);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
