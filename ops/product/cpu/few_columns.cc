#include "ops/product/cpu/few_columns.h"

#include <algorithm>

#include "base/check.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/short_sums.h"

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

// Vectors of floats, or of pairs of bfloat16; masks have the first elements.
HWY_INLINE M FirstElements(const float*, int64_t count) {
  return hn::FirstN(D(), static_cast<size_t>(count));
}
HWY_INLINE V LoadElements(const float* from) { return hn::LoadU(D(), from); }
HWY_INLINE V LoadElements(M mask, const float* from) {
  return hn::MaskedLoad(mask, D(), from);
}
HWY_INLINE V MultiplyAdd(const float*, V a, V b, V acc) {
  return hn::MulAdd(a, b, acc);
}

#if HWY_TARGET == HWY_AVX3
using D16 = HWY_FULL(uint16_t);
HWY_INLINE hn::Mask<D16> FirstElements(const uint16_t*, int64_t count) {
  return hn::FirstN(D16(), static_cast<size_t>(count));
}
HWY_INLINE V LoadElements(const uint16_t* from) {
  return hn::BitCast(D(), hn::LoadU(D16(), from));
}
HWY_INLINE V LoadElements(hn::Mask<D16> mask, const uint16_t* from) {
  return hn::BitCast(D(), hn::MaskedLoad(mask, D16(), from));
}
// In assembly, since Highway 1.0.3 and the compiler's options for its targets
// lack AVX512_BF16.
HWY_INLINE V MultiplyAdd(const uint16_t*, V a, V b, V acc) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(acc.raw) : "v"(b.raw), "v"(a.raw));
  return acc;
}
#endif

// kRows rows times kColumns columns.
template <int kRows, int kColumns, class T>
HWY_INLINE void MultiplyTile(int64_t k, const T* a, int64_t lda, const T* b,
                             int64_t ldb, float* c, int64_t ldc,
                             const SumSegments& segments) {
  const D d;
  constexpr auto kOfLane = static_cast<int64_t>(sizeof(float) / sizeof(T));
  const int64_t lanes = kOfLane * hn::Lanes(d);
  constexpr int kSums = kRows * kColumns;
  // Measured: rows of A that are in L3 take 15% less time with it.
  constexpr int64_t kAhead = 64 * kOfLane;
  // Eight multiplications that wait for none of each other.
  constexpr int kSets = kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  V acc[kSets][kSums];
  OPTRAIL_UNROLL for (int s = 0; s < kSets; ++s) {
    OPTRAIL_UNROLL for (int i = 0; i < kSums; ++i) acc[s][i] = hn::Zero(d);
  }
  for (int64_t segment = 0; segment < segments.count; ++segment) {
    int64_t p = 0;
    for (; p + kSets * lanes <= k; p += kSets * lanes) {
      OPTRAIL_UNROLL for (int s = 0; s < kSets; ++s) {
        V column[kColumns];
        OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
          column[j] = LoadElements(b + j * ldb + p + s * lanes);
        }
        OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
          const T* const from = a + i * lda + p + s * lanes;
          hwy::Prefetch(from + kAhead);
          V row = LoadElements(from);
          if constexpr (kColumns > 1) KeepInRegister(row);
          OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
            acc[s][i * kColumns + j] =
                MultiplyAdd(a, row, column[j], acc[s][i * kColumns + j]);
          }
        }
      }
    }
    for (; p < k; p += lanes) {
      const auto rest = FirstElements(a, std::min(lanes, k - p));
      V column[kColumns];
      OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
        column[j] = LoadElements(rest, b + j * ldb + p);
      }
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        const V row = LoadElements(rest, a + i * lda + p);
        OPTRAIL_UNROLL for (int j = 0; j < kColumns; ++j) {
          acc[0][i * kColumns + j] =
              MultiplyAdd(a, row, column[j], acc[0][i * kColumns + j]);
        }
      }
    }
    a += segments.step;
    b += k;
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
template <int kRows, int kColumns, class T>
void MultiplyRowsDown(const ProductSize& size, const T* a, int64_t lda,
                      const T* b, int64_t ldb, float* c, int64_t ldc,
                      const SumSegments& segments) {
  int64_t i = 0;
  for (; i + kRows <= size.m; i += kRows) {
    MultiplyTile<kRows, kColumns>(size.k, a + i * lda, lda, b, ldb, c + i * ldc,
                                  ldc, segments);
  }
  if constexpr (kRows > 1) {
    MultiplyRowsDown<kRows / 2, kColumns>({size.m - i, size.n, size.k},
                                          a + i * lda, lda, b, ldb, c + i * ldc,
                                          ldc, segments);
  }
}

// The sums and a row of B fit into registers.
template <int kColumns, class T>
void MultiplyColumns(const ProductSize& size, const T* a, int64_t lda,
                     const T* b, int64_t ldb, float* c, int64_t ldc,
                     const SumSegments& segments) {
  constexpr int kRows =
      HWY_TARGET == HWY_AVX3 ? (kColumns < 4 ? 8 : 4) : (kColumns < 4 ? 4 : 2);
  MultiplyRowsDown<kRows, kColumns>(size, a, lda, b, ldb, c, ldc, segments);
}

template <class T>
void MultiplyElements(const ProductSize& size, const T* a, int64_t lda,
                      const T* b, int64_t ldb, float* c, int64_t ldc,
                      const SumSegments& segments) {
  switch (size.n) {
    case 1:
      return MultiplyColumns<1>(size, a, lda, b, ldb, c, ldc, segments);
    case 2:
      return MultiplyColumns<2>(size, a, lda, b, ldb, c, ldc, segments);
    case 3:
      return MultiplyColumns<3>(size, a, lda, b, ldb, c, ldc, segments);
    default:
      return MultiplyColumns<4>(size, a, lda, b, ldb, c, ldc, segments);
  }
}

void MultiplyForTarget(const ProductSize& size, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float* c, int64_t ldc,
                       const SumSegments& segments) {
  MultiplyElements(size, a, lda, b, ldb, c, ldc, segments);
}

#if HWY_TARGET == HWY_AVX3

void MultiplyPairsForTarget(const ProductSize& size, const uint16_t* a,
                            int64_t lda, const uint16_t* b, int64_t ldb,
                            float* c, int64_t ldc,
                            const SumSegments& segments) {
  MultiplyElements(size, a, lda, b, ldb, c, ldc, segments);
}

#else

void MultiplyPairsForTarget(const ProductSize& size, const uint16_t*, int64_t,
                            const uint16_t*, int64_t, float*, int64_t,
                            const SumSegments&) {
  OPTRAIL_CHECK(false) << "no pairs on this machine: " << size.m << " x "
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
HWY_EXPORT(MultiplyPairsForTarget);
HWY_EXPORT(LanesForTarget);

namespace {

// Cycles for sixteen rows of a Zen 4 core; what counts is their ratio.
constexpr int64_t kRowsOfCost = 16;
int64_t CyclesOfTiles(int64_t k) { return kRowsOfCost * k + 90; }

int64_t CyclesAlongSums(const ProductSize& task, int64_t transposing,
                        int64_t segments = 1) {
  const auto& [m, n, k] = task;
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(LanesForTarget)();
  // To add up takes two multiplications for a place of C where four in a row
  // are stored at once, else four.
  const int64_t adding_up = 2 * n + (n == 1 ? 0 : 2 * (n % 4));
  // The end of a segment takes as long as a vector.
  const int64_t vectors =
      segments * (CeilDiv(k, lanes) + (segments > 1 ? 1 : 0));
  return kRowsOfCost * (n * vectors + adding_up) * (n > 8 ? 9 : 8) / 8 +
         kRowsOfCost * transposing / m;
}

int64_t CyclesOfTransposing(const ProductSize& task) {
  return HasShortSums({kRowsOfCost, 1, 1})
             ? 30 + CeilDiv(task.k, kRowsOfCost) * CeilDiv(task.n, 4) * 20
             : task.n * task.k / 4;
}

}  // namespace

FewColumns FewColumnsFor(const ProductSize& task, bool transposes,
                         bool has_strips) {
  const auto& [m, n, k] = task;
  if (n >= HWY_DYNAMIC_DISPATCH(LanesForTarget)()) return FewColumns::kNone;
  const int64_t in_tiles =
      has_strips ? kRowsOfCost * std::max<int64_t>(k, 3) + 8 : CyclesOfTiles(k);
  // What comes before the first row takes as long as some rows of strips, whose
  // calls are written down beforehand.
  const int64_t before = has_strips ? kRowsOfCost * 40 / m : 0;
  const int64_t along_sums =
      before +
      CyclesAlongSums(task, transposes ? CyclesOfTransposing(task) : 0);
  const int64_t along_rows =
      HasShortSums(task) ? before + CeilDiv(k, 4) * (14 + 9 * n / 2) + 20
                         : in_tiles;
  if (along_rows < std::min(along_sums, in_tiles)) {
    return FewColumns::kShortSums;
  }
  return along_sums < in_tiles ? FewColumns::kLongSums : FewColumns::kNone;
}

bool LongSumsOfPairsPay(const ProductSize& task, bool transposes) {
  if (task.n >= HWY_DYNAMIC_DISPATCH(LanesForTarget)()) return false;
  // Rows of B are joined to pairs in both cases.
  return CyclesAlongSums(task, transposes ? CyclesOfTransposing(task) : 0) <
         CyclesOfTiles(task.k);
}

bool LongSumsOfSegmentsPay(const ProductSize& task, int64_t segments) {
  if (task.n >= HWY_DYNAMIC_DISPATCH(LanesForTarget)()) return false;
  return CyclesAlongSums(task, /*transposing=*/0, segments) <
         CyclesOfTiles(segments * task.k);
}

namespace {

// Calls multiply(size, a, b, c) for columns that registers hold, with rows of A
// that stay in L1 for four columns after four.
template <class T, class Function>
void MultiplyByFour(const ProductSize& size, const T* a, int64_t lda,
                    const T* b, int64_t ldb, float* c, int64_t ldc,
                    const SumSegments& segments, const Function& multiply) {
  constexpr int64_t kElements = (16 << 10) / sizeof(T);
  constexpr int64_t kColumns = 4;
  const int64_t steps = std::max<int64_t>(segments.count * size.k, 1);
  const int64_t rows =
      size.n <= kColumns ? size.m : CeilDiv(CeilDiv(kElements, steps), 8) * 8;
  for (int64_t i = 0; i < size.m; i += rows) {
    for (int64_t j = 0; j < size.n; j += kColumns) {
      multiply(
          {std::min(rows, size.m - i), std::min(kColumns, size.n - j), size.k},
          a + i * lda, lda, b + j * ldb, ldb, c + i * ldc + j, ldc, segments);
    }
  }
}

}  // namespace

void MultiplyFewColumns(const ProductSize& size, const float* a, int64_t lda,
                        const float* b, int64_t ldb, float* c, int64_t ldc,
                        const SumSegments& segments) {
  MultiplyByFour(size, a, lda, b, ldb, c, ldc, segments,
                 HWY_DYNAMIC_DISPATCH(MultiplyForTarget));
}

void MultiplyFewColumns(const ProductSize& size, const uint16_t* a, int64_t lda,
                        const uint16_t* b, int64_t ldb, float* c, int64_t ldc,
                        const SumSegments& segments) {
  MultiplyByFour(size, a, lda, b, ldb, c, ldc, segments,
                 HWY_DYNAMIC_DISPATCH(MultiplyPairsForTarget));
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
