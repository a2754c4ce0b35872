#ifndef OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_

// Products of few columns. Vectors of C's columns would be mostly empty, so a
// vector holds partial sums along k instead, of a row of A times a column of B:
// k / lanes multiplications for each place of C and not k for each row.
//
//   if (FewColumnsPay(size)) {
//     MultiplyFewColumns(size, a, k, b_transposed, k, c, n);
//   }
//
// Thread-safe.

#include <cstdint>

#include "ops/product/cpu/blocking.h"

namespace optrail::ops {

// Whether that takes fewer multiplications than tiles of one vector, adding up
// vectors at the end included.
bool FewColumnsPay(const ProductSize& size);

// C = A * B. Rows of A are `lda` floats apart, columns of B, each in one piece,
// `ldb`, rows of C `ldc`.
void MultiplyFewColumns(const ProductSize& size, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
