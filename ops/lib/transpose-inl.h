// Transposes squares of float in vector registers, as many rows as a vector
// has lanes, so that whole vectors are read and written on both sides.
//
//   TransposeBlock<false>(x, rows, cols, cols_of_x, y, rows_of_y);
//
// Included once per SIMD target (simd_targets.h), hence the toggled guard.

#if defined(OPTRAIL_OPS_LIB_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_TRANSPOSE_INL_H_
#undef OPTRAIL_OPS_LIB_TRANSPOSE_INL_H_
#else
#define OPTRAIL_OPS_LIB_TRANSPOSE_INL_H_
#endif

#include <cstdint>

#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
constexpr int kSquare = 1;
#else
constexpr int kSquare = HWY_MAX_BYTES / sizeof(float);
#endif

// v[i][j] becomes v[j][i]. First 4 x 4 squares within the 128-bit blocks of
// vectors, then the blocks themselves.
HWY_INLINE void TransposeSquare(V (&v)[kSquare]) {
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const hn::RepartitionToWide<D> d64;
  OPTRAIL_UNROLL for (int i = 0; i < kSquare; i += 4) {
    const auto ab_low =
        hn::BitCast(d64, hn::InterleaveLower(d, v[i], v[i + 1]));
    const auto ab_high =
        hn::BitCast(d64, hn::InterleaveUpper(d, v[i], v[i + 1]));
    const auto cd_low =
        hn::BitCast(d64, hn::InterleaveLower(d, v[i + 2], v[i + 3]));
    const auto cd_high =
        hn::BitCast(d64, hn::InterleaveUpper(d, v[i + 2], v[i + 3]));
    v[i] = hn::BitCast(d, hn::InterleaveLower(d64, ab_low, cd_low));
    v[i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, cd_low));
    v[i + 2] = hn::BitCast(d, hn::InterleaveLower(d64, ab_high, cd_high));
    v[i + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, cd_high));
  }
#if HWY_MAX_BYTES >= 32
  // Now v[4 a + i] has in block b what belongs into block a of v[4 b + i].
  OPTRAIL_UNROLL for (int pair = 0; pair < kSquare; pair += 8) {
    OPTRAIL_UNROLL for (int i = 0; i < 4; ++i) {
      const V even = v[pair + i];
      const V odd = v[pair + 4 + i];
      v[pair + i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even);
      v[pair + 4 + i] = hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even));
    }
  }
#endif
#if HWY_MAX_BYTES >= 64
  OPTRAIL_UNROLL for (int i = 0; i < 8; ++i) {
    const V low = v[i];
    const V high = v[8 + i];
    v[i] = hn::ConcatLowerLower(d, high, low);
    v[8 + i] = hn::ConcatUpperUpper(d, high, low);
  }
#endif
#endif  // HWY_SCALAR
}

// A square of which only the first `rows` and `cols` are there, not all of
// them. No inline code: it is for edges.
inline HWY_NOINLINE void TransposeEdge(const float* x, int64_t rows,
                                       int64_t cols, int64_t ldx, float* y,
                                       int64_t ldy, bool pad) {
  const D d;
  V v[kSquare];
  OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
    v[i] = i >= rows        ? hn::Zero(d)
           : cols < kSquare ? LoadFirst(x + i * ldx, cols, hn::Zero(d))
                            : hn::LoadU(d, x + i * ldx);
  }
  TransposeSquare(v);
  OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
    if (i == cols) return;
    if (rows < kSquare && !pad) {
      StoreFirst(v[i], rows, y + i * ldy);
    } else {
      hn::StoreU(v[i], d, y + i * ldy);
    }
  }
}

// y[c * ldy + r] = x[r * ldx + c] for r < rows, c < cols. kStream needs every
// row of y aligned to 64 bytes; hwy::FlushStream() is the caller's. `pad`: 0 in
// the rest of a last square's rows of y.
template <bool kStream>
HWY_INLINE void TransposeBlock(const float* x, int64_t rows, int64_t cols,
                               int64_t ldx, float* y, int64_t ldy,
                               bool pad = false) {
  const D d;
  const int64_t whole_rows = rows / kSquare * kSquare;
  const int64_t whole_cols = cols / kSquare * kSquare;
  for (int64_t c = 0; c < whole_cols; c += kSquare) {
    for (int64_t r = 0; r < whole_rows; r += kSquare) {
      V v[kSquare];
      OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
        v[i] = hn::LoadU(d, x + (r + i) * ldx + c);
      }
      TransposeSquare(v);
      OPTRAIL_UNROLL for (int i = 0; i < kSquare; ++i) {
        float* const to = y + (c + i) * ldy + r;
        if (kStream) {
          hn::Stream(v[i], d, to);
        } else {
          hn::StoreU(v[i], d, to);
        }
      }
    }
    if (whole_rows < rows) {
      TransposeEdge(x + whole_rows * ldx + c, rows - whole_rows, kSquare, ldx,
                    y + c * ldy + whole_rows, ldy, pad);
    }
  }
  if (whole_cols == cols) return;
  for (int64_t r = 0; r < rows; r += kSquare) {
    TransposeEdge(x + r * ldx + whole_cols,
                  rows - r < kSquare ? rows - r : kSquare, cols - whole_cols,
                  ldx, y + whole_cols * ldy + r, ldy, pad);
  }
}

}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_LIB_TRANSPOSE_INL_H_
