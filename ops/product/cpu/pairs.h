#ifndef OPTRAIL_OPS_PRODUCT_CPU_PAIRS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_PAIRS_H_

// Factors of bfloat16 as FindPairTile's tiles read them: an element is a pair,
// two steps of k, that lies where floats would.

#include <cstdint>

namespace optrail::ops {

// Whether instructions for pairs multiply more in a second than those of
// floats: twice as much where as many of them start in a cycle, half as much
// where a fourth does. Both tiles are timed, once per process: some 50 us.
bool PairsPay();

// Copies `k` rows of B into panels of `width` columns, which begin
// `step` floats apart: row p of a panel holds rows 2 p and 2 p + 1. What k and
// the last panel lack becomes 0.
void PackPairPanels(int64_t width, int64_t columns, int64_t k,
                    const uint16_t* b, int64_t ldb, int64_t step,
                    float* panels);

// RoundToBf16 (blocks.h) by an instruction of those that have pairs, which
// takes denormals for 0.
void RoundPairSums(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                   uint16_t* y, int64_t ldy);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_PAIRS_H_
