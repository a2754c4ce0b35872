#ifndef OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_BF16_H_
#define OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_BF16_H_

// Products of bfloat16, whose sums are floats and rounded once. Where
// instructions that multiply pairs (AVX512_BF16) pay, A is read as it is stored
// and blocks of B become panels of pairs (pairs.h), which may stay packed;
// sums are rounded in registers. Elsewhere blocks are converted to float on
// their way into the caches: on Emerald Rapids those instructions have half the
// speed of float's, 81 against 166 GFLOP/s in one run. For a skinny A, B is
// converted in registers (widened_rows.h), unless it stays packed. Of few
// columns, with instructions for pairs, vectors hold partial sums along k
// (few_columns.h).
//
// These are the parts of Product (product.h) that are bfloat16's own.

#include <cstdint>

#include "ops/product/cpu/product.h"

namespace optrail::ops {

template <>
int64_t Product<uint16_t>::PlanBlocks(const ProductSpec& spec,
                                      CpuDevice& device);
template <>
void Product<uint16_t>::PackB(const uint16_t* b, float* to) const;
template <>
void Product<uint16_t>::MultiplyFewColumns(const Task& task, const Left& a,
                                           const Right& b, uint16_t* to,
                                           const Epilogue& epilogue,
                                           float* space) const;
template <>
void Product<uint16_t>::RunTask(const Task& task, const Left& a, const Right& b,
                                uint16_t* c, const Epilogue& epilogue,
                                float* space, float* partial_sums) const;
template <>
void Product<uint16_t>::AddPartialSums(const Call& call, uint16_t* c) const;

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_BF16_H_
