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

// The values of A for the next steps. Rows of plain A are reached from every
// third, by multiples of the stride that addresses can have. The compiler must
// not see through them: it would keep an address for every row and step, which
// is more than there are registers, in memory.
template <int kRows, int kUnroll, bool kPackedA>
class ColumnsOfA {
 public:
  HWY_INLINE ColumnsOfA(const float* a, int64_t stride) : stride_(stride) {
    OPTRAIL_UNROLL for (int i = 0; i < kPointers; ++i) {
      first_[i] = a + 3 * i * stride;
    }
    Forget();
  }

  // The value of row i, `u` steps ahead; both are constants.
  HWY_INLINE float At(int i, int u) const {
    return kPackedA ? first_[0][i * kUnroll + u]
                    : first_[i / 3][i % 3 * stride_ + u];
  }

  HWY_INLINE void Advance(int64_t floats) {
    OPTRAIL_UNROLL for (int i = 0; i < kPointers; ++i) first_[i] += floats;
    Forget();
  }

 private:
  static constexpr int kPointers = kPackedA ? 1 : (kRows + 2) / 3;

  HWY_INLINE void Forget() {
    OPTRAIL_UNROLL for (int i = 0; i < kPointers; ++i) {
      asm("" : "+r"(first_[i]));
    }
  }

  const float* first_[kPointers];
  int64_t stride_;
};

// acc += a column of A times a row of B.
template <int kRows, int kVectors, class Columns>
HWY_INLINE void AddOuterProduct(const Columns& a, int u,
                                const float* HWY_RESTRICT b,
                                V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V b_row[kVectors];
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    b_row[j] = hn::LoadU(d, b + j * lanes);
  }
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    const V a_value = hn::Set(d, a.At(i, u));
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

  ColumnsOfA<kRows, kUnroll, kPackedA> a(call.a, call.lda);
  const float* HWY_RESTRICT b = call.b;
  const int64_t ldb = call.ldb;
  const int64_t ahead = call.prefetch * ldb;
  int64_t left = call.k;
  int64_t segment = kPackedA ? left : std::min(left, call.first_segment);
  for (;;) {
    left -= segment;
    for (; segment >= kUnroll; segment -= kUnroll) {
      if (ahead != 0) {
        OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
          OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
            __builtin_prefetch(b + ahead + u * ldb + j * lanes);
          }
        }
      }
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        AddOuterProduct(a, u, b, acc);
        b += ldb;
        asm("" : "+r"(b));
      }
      a.Advance(kPackedA ? kRows * kUnroll : kUnroll);
    }
    for (; segment > 0; --segment) {
      AddOuterProduct(a, 0, b, acc);
      b += ldb;
      a.Advance(1);
    }
    if (kPackedA || left == 0) break;
    a.Advance(call.segment_gap);
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
