#ifndef OPTRAIL_OPS_PRODUCT_CPU_WIDENED_ROWS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_WIDENED_ROWS_H_

// A skinny A times a B of bfloat16, which is read once, from memory, and
// converted to f32 in registers: to write and read it as floats would take
// longer than to multiply.
//
//   AddRowsTimesBf16(a, k, rows, b, n, k, n, /*accumulate=*/false, sums, n);

#include <cstdint>

namespace optrail::ops {

// sums[i * ld_sums + j] = or += sum over p < k of a[i * lda + p] * b[p * ldb +
// j] for i < rows, j < cols. Best for some tens of steps: the lines of all of
// them are read together.
void AddRowsTimesBf16(const float* a, int64_t lda, int64_t rows,
                      const uint16_t* b, int64_t ldb, int64_t k, int64_t cols,
                      bool accumulate, float* sums, int64_t ld_sums);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_WIDENED_ROWS_H_
