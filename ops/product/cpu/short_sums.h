#ifndef OPTRAIL_OPS_PRODUCT_CPU_SHORT_SUMS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_SHORT_SUMS_H_

// Products of few columns and short sums: a vector holds a step of sixteen
// rows, transposed in registers.
//
//   if (HasShortSums(size)) {
//     MultiplyShortSums(size, a, k, b, {n, 1}, /*shift=*/nullptr, c, n);
//   }
//
// Thread-safe.

#include <cstdint>

#include "ops/product/cpu/blocking.h"

namespace optrail::ops {

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

#endif  // OPTRAIL_OPS_PRODUCT_CPU_SHORT_SUMS_H_
