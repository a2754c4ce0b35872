#include "ops/product/cpu/few_columns.h"

#include <algorithm>

#include "base/check.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/few_columns.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"
#include "ops/product/cpu/register-inl.h"

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

// Sums of the lanes of the first `count` of four vectors, the first in to[0];
// others are 0 or stay. Together they take a third of what each takes alone.
HWY_INLINE void AddUpFour(const V (&v)[4], int count, float* to) {
#if HWY_TARGET == HWY_AVX3
  const D d;
  const hn::Repartition<double, D> pairs;
  // [v0, v1] and [v2, v3] of every two lanes, then [v0, v1, v2, v3] of four.
  const V low = hn::Add(hn::InterleaveLower(d, v[0], v[1]),
                        hn::InterleaveUpper(d, v[0], v[1]));
  const V high = hn::Add(hn::InterleaveLower(d, v[2], v[3]),
                         hn::InterleaveUpper(d, v[2], v[3]));
  const auto low_pairs = hn::BitCast(pairs, low);
  const auto high_pairs = hn::BitCast(pairs, high);
  const V four = hn::Add(
      hn::BitCast(d, hn::InterleaveLower(pairs, low_pairs, high_pairs)),
      hn::BitCast(d, hn::InterleaveUpper(pairs, low_pairs, high_pairs)));
  const hn::Half<D> half;
  const Quarter quarter;
  const auto two =
      hn::Add(hn::LowerHalf(half, four), hn::UpperHalf(half, four));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)),
             quarter, to);
  (void)count;
#else
  for (int i = 0; i < count; ++i) {
    to[i] = hn::GetLane(hn::SumOfLanes(D(), v[i]));
  }
#endif
}

// kRows rows times kColumns columns.
template <int kRows, int kColumns>
HWY_INLINE void MultiplyTile(int64_t k, const float* a, int64_t lda,
                             const float* b, int64_t ldb, float* c,
                             int64_t ldc) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  constexpr int kSums = kRows * kColumns;
  // Measured: rows of A that are in L3 take 15% less time with it.
  constexpr int64_t kAhead = 64;
  // Eight multiplications that wait for none of each other.
  constexpr int kSets = kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  V acc[kSets][kSums];
  OPTRAIL_UNROLL for (int s = 0; s < kSets; ++s) {
    OPTRAIL_UNROLL for (int i = 0; i < kSums; ++i) acc[s][i] = hn::Zero(d);
  }
  int64_t p = 0;
  for (; p + kSets * lanes <= k; p += kSets * lanes) {
    OPTRAIL_UNROLL for (int s = 0; s < kSets; ++s) {
      V column[kColumns];
      OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
        column[j] = hn::LoadU(d, b + j * ldb + p + s * lanes);
      }
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        const float* const from = a + i * lda + p + s * lanes;
        hwy::Prefetch(from + kAhead);
        V row = hn::LoadU(d, from);
        if constexpr (kColumns > 1) KeepInRegister(row);
        OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
          acc[s][i * kColumns + j] =
              hn::MulAdd(row, column[j], acc[s][i * kColumns + j]);
        }
      }
    }
  }
  for (; p < k; p += lanes) {
    const M rest = hn::FirstN(d, static_cast<size_t>(std::min(lanes, k - p)));
    V column[kColumns];
    OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
      column[j] = hn::MaskedLoad(rest, d, b + j * ldb + p);
    }
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      const V row = hn::MaskedLoad(rest, d, a + i * lda + p);
      OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
        acc[0][i * kColumns + j] =
            hn::MulAdd(row, column[j], acc[0][i * kColumns + j]);
      }
    }
  }
  float sums[CeilDiv(kSums, 4) * 4];
  const bool in_row = kColumns == 4 || (kColumns == 1 && ldc == 1);
  OPTRAIL_UNROLL for (int i = 0; i < kSums; i += 4) {
    V four[4];
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      four[u] =
          i + u < kSums ? acc[0][std::min(i + u, kSums - 1)] : hn::Zero(d);
      OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
        if (i + u < kSums) four[u] = hn::Add(four[u], acc[s][i + u]);
      }
    }
    const bool at_once = in_row && i + 4 <= kSums;
    AddUpFour(four, std::min(4, kSums - i),
              at_once ? c + i / kColumns * ldc : sums + i);
  }
  if (in_row && kSums % 4 == 0) return;
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
      if (in_row && i * kColumns + j < kSums / 4 * 4) continue;
      c[i * ldc + j] = sums[i * kColumns + j];
    }
  }
}

// Computes as many rows as registers hold sums of, then fewer.
template <int kRows, int kColumns>
void MultiplyColumns(const ProductSize& size, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc) {
  int64_t i = 0;
  for (; i + kRows <= size.m; i += kRows) {
    MultiplyTile<kRows, kColumns>(size.k, a + i * lda, lda, b, ldb, c + i * ldc,
                                  ldc);
  }
  if constexpr (kRows > 1) {
    MultiplyColumns<kRows / 2, kColumns>({size.m - i, size.n, size.k},
                                         a + i * lda, lda, b, ldb, c + i * ldc,
                                         ldc);
  }
}

// The sums and a row of B fit into registers.
template <int kColumns>
void MultiplyColumns(const ProductSize& size, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc) {
  constexpr int kRows =
      HWY_TARGET == HWY_AVX3 ? (kColumns < 4 ? 8 : 4) : (kColumns < 4 ? 4 : 2);
  MultiplyColumns<kRows, kColumns>(size, a, lda, b, ldb, c, ldc);
}

void MultiplyForTarget(const ProductSize& size, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float* c, int64_t ldc) {
  switch (size.n) {
    case 1:
      return MultiplyColumns<1>(size, a, lda, b, ldb, c, ldc);
    case 2:
      return MultiplyColumns<2>(size, a, lda, b, ldb, c, ldc);
    case 3:
      return MultiplyColumns<3>(size, a, lda, b, ldb, c, ldc);
    default:
      return MultiplyColumns<4>(size, a, lda, b, ldb, c, ldc);
  }
}

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

int LanesForTarget() { return static_cast<int>(hn::Lanes(D())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(MultiplyForTarget);
HWY_EXPORT(MultiplyShortSumsForTarget);
HWY_EXPORT(TransposeFewColumnsForTarget);
HWY_EXPORT(HasShortSumsForTarget);
HWY_EXPORT(LanesForTarget);

bool HasShortSums(const ProductSize& size) {
  return size.m >= 16 && size.n <= 8 && size.k <= ShortSums::kMostSteps &&
         HWY_DYNAMIC_DISPATCH(HasShortSumsForTarget)();
}

FewColumns FewColumnsFor(const ProductSize& task, bool transposes) {
  const auto& [m, n, k] = task;
  const bool has_short_sums = HWY_DYNAMIC_DISPATCH(HasShortSumsForTarget)();
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(LanesForTarget)();
  // Cycles for sixteen rows of a Zen 4 core; what counts is their ratio.
  constexpr int64_t kRows = 16;
  if (n >= lanes) return FewColumns::kNone;
  const int64_t in_tiles = kRows * k + 90;
  // To add up takes two multiplications for a place of C where four in a row
  // are stored at once, else four.
  const int64_t adding_up = 2 * n + (n == 1 ? 0 : 2 * (n % 4));
  int64_t transposing =
      has_short_sums ? 30 + CeilDiv(k, kRows) * CeilDiv(n, 4) * 20 : n * k / 4;
  if (!transposes) transposing = 0;
  const int64_t along_sums =
      kRows * (n * CeilDiv(k, lanes) + adding_up) * (n > 8 ? 9 : 8) / 8 +
      kRows * transposing / m;
  const int64_t along_rows =
      HasShortSums(task) ? CeilDiv(k, 4) * (14 + 9 * n / 2) + 20 : in_tiles;
  if (along_rows < std::min(along_sums, in_tiles)) {
    return FewColumns::kShortSums;
  }
  return along_sums < in_tiles ? FewColumns::kLongSums : FewColumns::kNone;
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

void MultiplyFewColumns(const ProductSize& size, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc) {
  // Rows of A that stay in L1 for four columns after four.
  constexpr int64_t kFloats = (16 << 10) / sizeof(float);
  constexpr int64_t kColumns = 4;
  const int64_t rows =
      size.n <= kColumns ? size.m : CeilDiv(CeilDiv(kFloats, size.k), 8) * 8;
  for (int64_t i = 0; i < size.m; i += rows) {
    for (int64_t j = 0; j < size.n; j += kColumns) {
      HWY_DYNAMIC_DISPATCH(MultiplyForTarget)
      ({std::min(rows, size.m - i), std::min(kColumns, size.n - j), size.k},
       a + i * lda, lda, b + j * ldb, ldb, c + i * ldc + j, ldc);
    }
  }
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
