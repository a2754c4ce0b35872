#include "ops/product/cpu/short_sums.h"

#include <algorithm>

#include "base/check.h"
#include "ops/lib/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/short_sums.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
using Quarter = hn::Half<hn::Half<D>>;

// In every 128 bits: what the four vectors have in place i becomes to[i].
HWY_INLINE void TransposeFour(const V (&v)[4], V (&to)[4]) {
  const D d;
  const hn::Repartition<double, D> pairs;
  V low[2], high[2];
  OPTRAIL_UNROLL for (int i = 0; i < 2; ++i) {
    low[i] = hn::InterleaveLower(d, v[2 * i], v[2 * i + 1]);
    high[i] = hn::InterleaveUpper(d, v[2 * i], v[2 * i + 1]);
  }
  const auto join = [&](const V(&two)[2], V& first,
                        V& second) OPTRAIL_INLINE_LAMBDA {
    const auto a = hn::BitCast(pairs, two[0]);
    const auto b = hn::BitCast(pairs, two[1]);
    first = hn::BitCast(d, hn::InterleaveLower(pairs, a, b));
    second = hn::BitCast(d, hn::InterleaveUpper(pairs, a, b));
  };
  join(low, to[0], to[1]);
  join(high, to[2], to[3]);
}
#endif

#if HWY_TARGET == HWY_AVX3

constexpr int kRowsInLanes = 16;

// to[u] = step u of sixteen rows, the first steps that `mask` has.
template <bool kWhole>
HWY_INLINE void LoadSteps(const float* a, int64_t lda, hn::Mask<Quarter> mask,
                          V (&to)[4]) {
  const D d;
  const hn::Half<D> half;
  const Quarter quarter;
  const auto row = [&](int i) OPTRAIL_INLINE_LAMBDA {
    const float* const from = a + i * lda;
    return kWhole ? hn::LoadU(quarter, from)
                  : hn::MaskedLoad(mask, quarter, from);
  };
  V rows[4];  // every fourth row
  OPTRAIL_UNROLL for (int i = 0; i < 4; ++i) {
    rows[i] = hn::Combine(d, hn::Combine(half, row(i + 12), row(i + 8)),
                          hn::Combine(half, row(i + 4), row(i)));
  }
  TransposeFour(rows, to);
}

// C = sums[column], of sixteen rows.
template <int kColumns>
HWY_INLINE void StoreRows(const V (&sums)[kColumns], float* c, int64_t ldc) {
  const D d;
  const hn::Half<D> half;
  const Quarter quarter;
  if (kColumns == 1 && ldc == 1) return hn::StoreU(sums[0], d, c);
  OPTRAIL_UNROLL for (int j = 0; j < kColumns; j += 4) {
    const int count = std::min(4, kColumns - j);
    V four[4], rows[4];
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      four[u] = u < count ? sums[std::min(j + u, kColumns - 1)] : hn::Zero(d);
    }
    TransposeFour(four, rows);
    const auto store = [&](hn::Vec<Quarter> v, int i) OPTRAIL_INLINE_LAMBDA {
      float* const to = c + i * ldc + j;
      if (count == 4) {
        hn::StoreU(v, quarter, to);
      } else {
        hn::BlendedStore(v, hn::FirstN(quarter, static_cast<size_t>(count)),
                         quarter, to);
      }
    };
    OPTRAIL_UNROLL for (int i = 0; i < 4; ++i) {
      const auto low = hn::LowerHalf(half, rows[i]);
      const auto high = hn::UpperHalf(half, rows[i]);
      store(hn::LowerHalf(quarter, low), i);
      store(hn::UpperHalf(quarter, low), i + 4);
      store(hn::LowerHalf(quarter, high), i + 8);
      store(hn::UpperHalf(quarter, high), i + 12);
    }
  }
}

// Sixteen rows.
template <int kColumns>
HWY_INLINE void MultiplyRows(int64_t k, const float* a, int64_t lda,
                             const float* b, const ShortSums& strides,
                             const float* shift, float* c, int64_t ldc) {
  const D d;
  const auto value = [&](int64_t step, int j) OPTRAIL_INLINE_LAMBDA {
    return hn::Set(d, b[step * strides.step + j * strides.column]);
  };
  V acc[kColumns], steps[4];
  OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
    acc[j] = shift == nullptr ? hn::Zero(d) : hn::Set(d, shift[j]);
  }
  const hn::Mask<Quarter> mask =
      hn::FirstN(Quarter(), static_cast<size_t>(std::min<int64_t>(k, 4)));
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    LoadSteps<true>(a + p, lda, mask, steps);
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
        acc[j] = hn::MulAdd(steps[u], value(p + u, j), acc[j]);
      }
    }
  }
  if (p < k) {
    // The last four steps, of which some are done already.
    const int64_t first = std::max<int64_t>(k - 4, 0);
    LoadSteps<false>(a + first, lda, mask, steps);
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      if (first + u < p || first + u >= k) continue;
      OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
        acc[j] = hn::MulAdd(steps[u], value(first + u, j), acc[j]);
      }
    }
  }
  StoreRows<kColumns>(acc, c, ldc);
}

template <int kColumns>
void MultiplyShortSums(const ProductSize& size, const float* a, int64_t lda,
                       const float* b, const ShortSums& strides,
                       const float* shift, float* c, int64_t ldc) {
  const auto& [m, n, k] = size;
  if (m < kRowsInLanes) {
    HWY_ALIGN float rows[kRowsInLanes * ShortSums::kMostSteps] = {};
    HWY_ALIGN float sums[kRowsInLanes * kColumns];
    for (int64_t i = 0; i < m; ++i) {
      std::copy_n(a + i * lda, k, rows + i * k);
    }
    MultiplyRows<kColumns>(k, rows, k, b, strides, shift, sums, kColumns);
    for (int64_t i = 0; i < m; ++i) {
      std::copy_n(sums + i * kColumns, kColumns, c + i * ldc);
    }
    return;
  }
  for (int64_t i = 0; i < m; i += kRowsInLanes) {
    // The last rows of all, of which some may be done already.
    const int64_t row = std::min(i, m - kRowsInLanes);
    MultiplyRows<kColumns>(k, a + row * lda, lda, b, strides, shift,
                           c + row * ldc, ldc);
  }
}

// Sixteen steps of B at a time are rows in lanes, too. TransposeInto takes four
// times as long for fewer columns than vectors have lanes.
void TransposeFewColumnsForTarget(const float* b, int64_t k, int64_t n,
                                  int64_t ldb, float* to) {
  const D d;
  if (k < kRowsInLanes) return TransposeInto(b, k, n, ldb, to, k);
  for (int64_t p = 0; p < k; p += kRowsInLanes) {
    const int64_t step = std::min(p, k - kRowsInLanes);
    for (int64_t j = 0; j < n; j += 4) {
      const int64_t count = std::min<int64_t>(4, n - j);
      V columns[4];
      LoadSteps<false>(b + step * ldb + j, ldb,
                       hn::FirstN(Quarter(), static_cast<size_t>(count)),
                       columns);
      OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
        if (u < count) hn::StoreU(columns[u], d, to + (j + u) * k + step);
      }
    }
  }
}

bool HasShortSumsForTarget() { return true; }

void MultiplyShortSumsForTarget(const ProductSize& size, const float* a,
                                int64_t lda, const float* b,
                                const ShortSums& strides, const float* shift,
                                float* c, int64_t ldc) {
  using Function =
      void (*)(const ProductSize&, const float*, int64_t, const float*,
               const ShortSums&, const float*, float*, int64_t);
  static constexpr Function kFunctions[] = {
      &MultiplyShortSums<1>, &MultiplyShortSums<2>, &MultiplyShortSums<3>,
      &MultiplyShortSums<4>, &MultiplyShortSums<5>, &MultiplyShortSums<6>,
      &MultiplyShortSums<7>, &MultiplyShortSums<8>};
  kFunctions[size.n - 1](size, a, lda, b, strides, shift, c, ldc);
}

#else

void TransposeFewColumnsForTarget(const float* b, int64_t k, int64_t n,
                                  int64_t ldb, float* to) {
  TransposeInto(b, k, n, ldb, to, k);
}

bool HasShortSumsForTarget() { return false; }

void MultiplyShortSumsForTarget(const ProductSize& size, const float*, int64_t,
                                const float*, const ShortSums&, const float*,
                                float*, int64_t) {
  OPTRAIL_CHECK(false) << "no short sums on this machine: " << size.m << " x "
                       << size.n << " x " << size.k;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(MultiplyShortSumsForTarget);
HWY_EXPORT(TransposeFewColumnsForTarget);
HWY_EXPORT(HasShortSumsForTarget);

bool HasShortSums(const ProductSize& size) {
  return size.m >= 16 && size.n <= 8 && size.k <= ShortSums::kMostSteps &&
         HWY_DYNAMIC_DISPATCH(HasShortSumsForTarget)();
}

void TransposeFewColumns(const float* b, int64_t k, int64_t n, int64_t ldb,
                         float* to) {
  HWY_DYNAMIC_DISPATCH(TransposeFewColumnsForTarget)(b, k, n, ldb, to);
}

void MultiplyShortSums(const ProductSize& size, const float* a, int64_t lda,
                       const float* b, const ShortSums& strides,
                       const float* shift, float* c, int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(MultiplyShortSumsForTarget)
  (size, a, lda, b, strides, shift, c, ldc);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
