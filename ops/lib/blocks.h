#ifndef OPTRAIL_OPS_LIB_BLOCKS_H_
#define OPTRAIL_OPS_LIB_BLOCKS_H_

// What is done to a block of a matrix that is in the caches, for the best SIMD
// target of this machine. Compiled once for all kernels.
//
//   TransposeInto(keys, count, d, d, block, count);
//   ScaleShiftActivate({nullptr, bias, Activation::kGelu}, c, rows, cols, ldc);

#include <cstdint>

namespace optrail::ops {

// y[c * ldy + r] = x[r * ldx + c] for r < rows, c < cols. `pad`: and 0 from
// there to the next multiple of a vector.
void TransposeInto(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                   float* y, int64_t ldy, bool pad = false);

// `width` columns into each of `panels`, which are `step` floats apart:
// y[panel * step + r * ldy + c] = x[r * ldx + panel * width + c].
void CopyPanels(const float* x, int64_t rows, int64_t panels, int64_t width,
                int64_t ldx, float* y, int64_t ldy, int64_t step);

// y[r * ldy + c] = x[r * ldx + c], x being of bfloat16: exact.
void Widen(const uint16_t* x, int64_t rows, int64_t cols, int64_t ldx, float* y,
           int64_t ldy);

// The other way, rounded to nearest even. NaN stays NaN.
void RoundToBf16(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                 uint16_t* y, int64_t ldy);

enum class Activation { kNone, kRelu, kGelu };

// The epilogue of a product, column by column: activation(c * scale + shift).
struct Epilogue {
  const float* scale = nullptr;  // nullptr: 1
  const float* shift = nullptr;  // nullptr: 0
  Activation activation = Activation::kNone;

  bool changes_nothing() const {
    return scale == nullptr && shift == nullptr &&
           activation == Activation::kNone;
  }

  // Returns the epilogue of the columns from `column` on.
  Epilogue From(int64_t column) const {
    return {scale == nullptr ? nullptr : scale + column,
            shift == nullptr ? nullptr : shift + column, activation};
  }
};

// In place; `epilogue` begins with the first of the columns.
void ScaleShiftActivate(const Epilogue& epilogue, float* c, int64_t rows,
                        int64_t cols, int64_t ldc);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_BLOCKS_H_
