#include "ops/product/cpu/widened_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/widened_rows.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/lib/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {
namespace {

using D16 = hn::Rebind<uint16_t, D>;
using D32 = hn::RebindToUnsigned<D>;

struct Rows {
  const float* a;
  int64_t lda;
  const uint16_t* b;
  int64_t ldb;
  int64_t k;
  bool accumulate;
  float* sums;
  int64_t ld_sums;
};

HWY_INLINE V Widened(const uint16_t* from) {
  const auto bits = hn::PromoteTo(D32(), hn::LoadU(D16(), from));
  return hn::BitCast(D(), hn::ShiftLeft<16>(bits));
}

// kVectors whole vectors of columns from `j` on, of kRows rows from `i` on.
template <int kRows, int kVectors>
HWY_INLINE void AddColumns(const Rows& rows, int64_t i, int64_t j) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const float* a = rows.a + i * rows.lda;
  const uint16_t* b = rows.b + j;
  float* const sums = rows.sums + i * rows.ld_sums + j;
  V acc[kRows][kVectors];
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = rows.accumulate
                      ? hn::LoadU(d, sums + r * rows.ld_sums + v * lanes)
                      : hn::Zero(d);
    }
  }
  for (int64_t p = 0; p < rows.k; ++p, ++a, b += rows.ldb) {
    V row[kVectors];
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      row[v] = Widened(b + v * lanes);
    }
    OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, a[r * rows.lda]);
      OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
        acc[r][v] = hn::MulAdd(value, row[v], acc[r][v]);
      }
    }
  }
  OPTRAIL_UNROLL for (int r = 0; r < kRows; ++r) {
    OPTRAIL_UNROLL for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(acc[r][v], d, sums + r * rows.ld_sums + v * lanes);
    }
  }
}

// Columns that do not fill a vector, one by one.
void AddLastColumns(const Rows& rows, int64_t count, int64_t j, int64_t cols) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = j; c < cols; ++c) {
      float& sum = rows.sums[i * rows.ld_sums + c];
      float total = rows.accumulate ? sum : 0.0f;
      for (int64_t p = 0; p < rows.k; ++p) {
        const uint32_t bits = uint32_t{rows.b[p * rows.ldb + c]} << 16;
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        total += rows.a[i * rows.lda + p] * value;
      }
      sum = total;
    }
  }
}

// All rows, some at a time, so that what is read of b is in L1 or L2 for all
// but the first.
template <int kVectors>
HWY_INLINE void AddAllRows(const Rows& rows, int64_t count, int64_t j) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    // Two vectors are a line of b; twice as many sums are too many.
    constexpr int kLine = kVectors < 2 ? kVectors : 2;
    for (int v = 0; v < kVectors; v += kLine) {
      AddColumns<8, kLine>(rows, i, j + v * hn::Lanes(D()));
    }
  }
  if (count - i >= 4) {
    AddColumns<4, kVectors>(rows, i, j);
    i += 4;
  }
  if (count - i >= 2) {
    AddColumns<2, kVectors>(rows, i, j);
    i += 2;
  }
  if (i < count) AddColumns<1, kVectors>(rows, i, j);
}

void AddRowsForTarget(const float* a, int64_t lda, int64_t count,
                      const uint16_t* b, int64_t ldb, int64_t k, int64_t cols,
                      bool accumulate, float* sums, int64_t ld_sums) {
  const Rows rows = {a, lda, b, ldb, k, accumulate, sums, ld_sums};
  const int64_t lanes = hn::Lanes(D());
  int64_t j = 0;
  for (; j + 4 * lanes <= cols; j += 4 * lanes) AddAllRows<4>(rows, count, j);
  for (; j + lanes <= cols; j += lanes) AddAllRows<1>(rows, count, j);
  if (j < cols) AddLastColumns(rows, count, j, cols);
}

}  // namespace
}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {
namespace {
HWY_EXPORT(AddRowsForTarget);
}  // namespace

void AddRowsTimesBf16(const float* a, int64_t lda, int64_t rows,
                      const uint16_t* b, int64_t ldb, int64_t k, int64_t cols,
                      bool accumulate, float* sums, int64_t ld_sums) {
  HWY_DYNAMIC_DISPATCH(AddRowsForTarget)
  (a, lda, rows, b, ldb, k, cols, accumulate, sums, ld_sums);
}

}  // namespace optrail::ops
#endif  // HWY_ONCE
