#include "ops/product/cpu/few_columns.h"

#include <algorithm>

#include "ops/lib/cpu_frame.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/few_columns.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

// Sums of four vectors' lanes, the first in to[0]. Together they take a third
// of what each takes alone.
HWY_INLINE void AddUpFour(const V (&v)[4], float* to) {
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
  const hn::Half<hn::Half<D>> quarter;
  const auto two =
      hn::Add(hn::LowerHalf(half, four), hn::UpperHalf(half, four));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)),
             quarter, to);
#else
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(hn::SumOfLanes(D(), v[i]));
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
  // Rows of A in L3 are 15% faster so.
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
        const V row = hn::LoadU(d, from);
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
  OPTRAIL_UNROLL for (int i = 0; i < kSums; i += 4) {
    V four[4];
    OPTRAIL_UNROLL for (int u = 0; u < 4; ++u) {
      four[u] =
          i + u < kSums ? acc[0][std::min(i + u, kSums - 1)] : hn::Zero(d);
      OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
        if (i + u < kSums) four[u] = hn::Add(four[u], acc[s][i + u]);
      }
    }
    AddUpFour(four, sums + i);
  }
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
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

int LanesForTarget() { return static_cast<int>(hn::Lanes(D())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(MultiplyForTarget);
HWY_EXPORT(LanesForTarget);

bool FewColumnsPay(const ProductSize& size) {
  constexpr int64_t kMost = 8;
  constexpr int64_t kAddingUp = 4;  // multiplications, for a place of C
  const int64_t vectors =
      CeilDiv(size.k, HWY_DYNAMIC_DISPATCH(LanesForTarget)()) + kAddingUp;
  // To transpose a column of B takes as long as a quarter of its length.
  return size.n <= kMost &&
         (vectors * size.m + size.k / 4) * size.n <= size.k * size.m;
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
