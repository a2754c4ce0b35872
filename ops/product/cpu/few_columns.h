#ifndef OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_

// Products of few columns. Vectors of C's columns would be mostly empty.
// For long sums, a vector holds partial sums along k instead, of a row of A
// times a column of B: k / lanes multiplications for each place of C and not k
// for each row. Short ones have short_sums.h.
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
  kShortSums,  // MultiplyShortSums (short_sums.h)
};

// The way of the least estimated time, of a task. `transposes`: long sums would
// need TransposeFewColumns (short_sums.h) first. `has_strips`: strips
// (strips.h) would serve in place of tiles.
FewColumns FewColumnsFor(const ProductSize& task, bool transposes,
                         bool has_strips = false);

// Returns whether MultiplyFewColumns is the faster way for pairs of bfloat16;
// the k of `task` counts pairs.
bool LongSumsOfPairsPay(const ProductSize& task, bool transposes);

// A row's sums may come in `count` segments of k steps each, which begin `step`
// elements of A apart, such as the rows of a convolution's filter. Those of B
// follow each other.
struct SumSegments {
  int64_t count = 1;
  int64_t step = 0;
};

// Returns whether MultiplyFewColumns is the faster way for so many segments,
// with a B that is transposed already. The k of `task` counts pairs where they
// are multiplied.
bool LongSumsOfSegmentsPay(const ProductSize& task, int64_t segments);

// C = A * B. Rows of A are `lda` floats apart, columns of B, each in one piece,
// `ldb`, rows of C `ldc`.
void MultiplyFewColumns(const ProductSize& size, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc,
                        const SumSegments& segments = {});
// The same of bfloat16, by instructions for pairs: where FindPairTile (in
// micro_kernel.h) finds tiles. The others end the program.
void MultiplyFewColumns(const ProductSize& size, const uint16_t* a, int64_t lda,
                        const uint16_t* b, int64_t ldb, float* c, int64_t ldc,
                        const SumSegments& segments = {});

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_FEW_COLUMNS_H_
