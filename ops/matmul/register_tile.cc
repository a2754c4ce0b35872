// Compiled once for each OPTRAIL_K_UNROLL.

#include "ops/matmul/register_tile.h"

#include <algorithm>

// Targets between plain C++ and AVX2 cost compile time and serve hardly anyone.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/register_tile.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/matmul/matmul_knobs.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_FULL(float);
using V = hn::Vec<D>;

constexpr int kVectorRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 16;

// Accumulators have to become registers, so the loops over them must vanish.
#define OPTRAIL_UNROLL _Pragma("GCC unroll 16")

// acc += a column of A times a row of B. `row_step` is a constant for packed A.
template <int kRows, int kVectors>
HWY_INLINE void AddOuterProduct(const float* HWY_RESTRICT a, int64_t row_step,
                                const float* HWY_RESTRICT b,
                                V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V b_row[kVectors];
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    b_row[j] = hn::LoadU(d, b + j * lanes);
  }
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    const V a_value = hn::Set(d, a[i * row_step]);
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = hn::MulAdd(a_value, b_row[j], acc[i][j]);
    }
  }
}

template <int kRows, int kVectors, int kUnroll, bool kPackedA>
void MultiplyTile(const TileCall& call) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V acc[kRows][kVectors];
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = hn::Zero(d);
    }
  }
  // C is needed last; its rows lie on different pages.
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      __builtin_prefetch(call.c + i * call.ldc + j * lanes, 1);
    }
  }

  const float* HWY_RESTRICT a = call.a;
  const float* HWY_RESTRICT b = call.b;
  const int64_t ldb = call.ldb;
  const int64_t row_step = kPackedA ? kUnroll : call.lda;
  const int64_t ahead = call.prefetch * ldb;
  int64_t left = call.k;
  int64_t segment = kPackedA ? left : std::min(left, call.first_segment);
  for (;;) {
    left -= segment;
    for (; segment >= kUnroll; segment -= kUnroll) {
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        if (ahead != 0) {
          OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
            __builtin_prefetch(b + ahead + j * lanes);
          }
        }
        AddOuterProduct(a + u, row_step, b, acc);
        b += ldb;
      }
      a += kPackedA ? kRows * kUnroll : kUnroll;
    }
    for (int64_t u = 0; u < segment; ++u) {
      AddOuterProduct(a + u, row_step, b, acc);
      b += ldb;
    }
    if (kPackedA || left == 0) break;
    a += segment + call.segment_gap;
    segment = std::min(left, call.segment);
  }

  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    float* c = call.c + i * call.ldc;
    if (call.accumulate) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        const V sum = hn::Add(acc[i][j], hn::LoadU(d, c + j * lanes));
        hn::StoreU(sum, d, c + j * lanes);
      }
    } else {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        hn::StoreU(acc[i][j], d, c + j * lanes);
      }
    }
  }
}

// Accumulators, a row of B and one broadcast value.
template <int kRows, int kVectors, int kUnroll>
RegisterTile Instantiate() {
  RegisterTile tile;
  if constexpr (kRows * kVectors + kVectors + 1 <= kVectorRegisters) {
    tile.rows = kRows;
    tile.columns = kVectors * static_cast<int>(hn::Lanes(D()));
    tile.k_unroll = kUnroll;
    tile.packed_a = &MultiplyTile<kRows, kVectors, kUnroll, true>;
    tile.plain_a = &MultiplyTile<kRows, kVectors, kUnroll, false>;
  }
  return tile;
}

RegisterTile FindForTarget(int instantiation) {
  switch (instantiation) {
#define OPTRAIL_CASE(index, rows, vectors, k_unroll) \
  case index:                                        \
    if constexpr (k_unroll == OPTRAIL_K_UNROLL) {    \
      return Instantiate<rows, vectors, k_unroll>(); \
    }                                                \
    break;
    OPTRAIL_MATMUL_INSTANTIATIONS(OPTRAIL_CASE)
#undef OPTRAIL_CASE
    default:
      break;
  }
  return RegisterTile();
}

int LanesForTarget() { return static_cast<int>(hn::Lanes(D())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace optrail::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace optrail::ops {

HWY_EXPORT(FindForTarget);
HWY_EXPORT(LanesForTarget);

template <>
RegisterTile FindUnrolledTile<OPTRAIL_K_UNROLL>(int rows, int vectors) {
  MatmulKnobs knobs;
  knobs.mr = rows;
  knobs.nr_vectors = vectors;
  knobs.k_unroll = OPTRAIL_K_UNROLL;
  return HWY_DYNAMIC_DISPATCH(FindForTarget)(knobs.InstantiationIndex());
}

#if OPTRAIL_K_UNROLL == 1
int TileLanes() { return HWY_DYNAMIC_DISPATCH(LanesForTarget)(); }
#endif

}  // namespace optrail::ops
#endif  // HWY_ONCE
