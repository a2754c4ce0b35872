// Loops over vectors of float that kernels share: unrolled, with tails that
// read and write nothing beyond the end, and reductions.
//
//   const float sum = SumRow<4>(x, cols);
//   MapRow<4>(x, cols, /*stream=*/false, y,
//             [&](V v) OPTRAIL_INLINE_LAMBDA { return hn::Mul(v, scale); });
//
// Included once per SIMD target (simd_targets.h), hence the toggled guard.

#if defined(OPTRAIL_OPS_LIB_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_SIMD_INL_H_
#undef OPTRAIL_OPS_LIB_SIMD_INL_H_
#else
#define OPTRAIL_OPS_LIB_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

// Accumulators have to become registers, so the loops over them must vanish.
#undef OPTRAIL_UNROLL
#define OPTRAIL_UNROLL _Pragma("GCC unroll 16")
#undef OPTRAIL_INLINE_LAMBDA
#define OPTRAIL_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_FULL(float);
using V = hn::Vec<D>;
using M = hn::Mask<D>;

// The first `count` < lanes values, and `otherwise` in the other lanes. Reads
// nothing beyond them.
HWY_INLINE V LoadFirst(const float* from, int64_t count, V otherwise) {
  const D d;
  const M mask = hn::FirstN(d, static_cast<size_t>(count));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), otherwise);
}

HWY_INLINE void StoreFirst(V v, int64_t count, float* to) {
  const D d;
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
}

// Calls step(u, x) for vectors of the row, with u < kUnroll a constant. The
// last one is filled up with `filler`. Meanwhile as many columns of `ahead` are
// prefetched, unless it is nullptr.
template <int kUnroll, class Step>
HWY_INLINE void ForEachVector(const float* x, int64_t cols, V filler,
                              const Step& step, const float* ahead = nullptr) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  int64_t j = 0;
  for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      if (ahead != nullptr) hwy::Prefetch(ahead + j + u * lanes);
      step(u, hn::LoadU(d, x + j + u * lanes));
    }
  }
  for (; j + lanes <= cols; j += lanes) step(0, hn::LoadU(d, x + j));
  if (j < cols) step(0, LoadFirst(x + j, cols - j, filler));
}

// y[j] = f(x[j]). `stream` writes past the caches and needs y aligned to 64
// bytes; hwy::FlushStream() is the caller's.
template <int kUnroll, class F>
HWY_INLINE void MapRow(const float* x, int64_t cols, bool stream, float* y,
                       const F& f) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  int64_t j = 0;
  if (stream) {
    for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        hn::Stream(f(hn::LoadU(d, x + j + u * lanes)), d, y + j + u * lanes);
      }
    }
  } else {
    for (; j + kUnroll * lanes <= cols; j += kUnroll * lanes) {
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        hn::StoreU(f(hn::LoadU(d, x + j + u * lanes)), d, y + j + u * lanes);
      }
    }
  }
  for (; j + lanes <= cols; j += lanes) {
    hn::StoreU(f(hn::LoadU(d, x + j)), d, y + j);
  }
  if (j < cols) {
    StoreFirst(f(LoadFirst(x + j, cols - j, hn::Zero(d))), cols - j, y + j);
  }
}

template <int kUnroll>
HWY_INLINE float SumRow(const float* x, int64_t cols,
                        const float* ahead = nullptr) {
  const D d;
  V sum[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) sum[u] = hn::Zero(d);
  ForEachVector<kUnroll>(
      x, cols, hn::Zero(d),
      [&](int u, V v) OPTRAIL_INLINE_LAMBDA { sum[u] = hn::Add(sum[u], v); },
      ahead);
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    sum[0] = hn::Add(sum[0], sum[u]);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

// y[c] = the sum over i < kRows of x[i * stride + c], added to what y has
// unless these are the first rows. Four vectors of a row before those of the
// next: taking one of each in turn, Zen 5 read memory at two thirds the rate.
template <int kRows>
HWY_INLINE void AddRows(const float* x, int64_t cols, int64_t stride,
                        bool first, float* y) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  constexpr int kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * lanes <= cols; c += kVectors * lanes) {
    V sum[kVectors];
    OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
      sum[u] = hn::LoadU(d, x + c + u * lanes);
    }
    OPTRAIL_UNROLL for (int i = 1; i < kRows; ++i) {
      OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
        sum[u] = hn::Add(sum[u], hn::LoadU(d, x + i * stride + c + u * lanes));
      }
    }
    OPTRAIL_UNROLL for (int u = 0; u < kVectors; ++u) {
      float* const to = y + c + u * lanes;
      if (!first) sum[u] = hn::Add(sum[u], hn::LoadU(d, to));
      hn::StoreU(sum[u], d, to);
    }
  }
  for (; c < cols; c += lanes) {
    const int64_t left = cols - c;
    auto load = [&](const float* from) OPTRAIL_INLINE_LAMBDA {
      return left >= lanes ? hn::LoadU(d, from)
                           : LoadFirst(from, left, hn::Zero(d));
    };
    V sum = load(x + c);
    OPTRAIL_UNROLL for (int i = 1; i < kRows; ++i) {
      sum = hn::Add(sum, load(x + i * stride + c));
    }
    if (!first) sum = hn::Add(sum, load(y + c));
    if (left >= lanes) {
      hn::StoreU(sum, d, y + c);
    } else {
      StoreFirst(sum, left, y + c);
    }
  }
}

// y[c] = the sum over r < `rows` of x[r * stride + c], kRows rows per reading
// of y. Columns go in pieces, so that those of y stay in the L1 cache.
template <int kRows>
HWY_INLINE void SumColumns(const float* x, int64_t rows, int64_t cols,
                           int64_t stride, float* y) {
  constexpr int64_t kPiece = 4096;
  for (int64_t begin = 0; begin < cols; begin += kPiece) {
    const int64_t count = cols - begin < kPiece ? cols - begin : kPiece;
    const float* const from = x + begin;
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      AddRows<kRows>(from + r * stride, count, stride, r == 0, y + begin);
    }
    for (; r < rows; ++r) {
      AddRows<1>(from + r * stride, count, stride, r == 0, y + begin);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#endif  // OPTRAIL_OPS_LIB_SIMD_INL_H_
