// Compiled once for each OPTRAIL_K_UNROLL and OPTRAIL_WIDE, whether tiles have
// more than two vectors, and once with OPTRAIL_PAIRS, of bfloat16.

#include "ops/matmul/register_tile.h"

#include <algorithm>
#include <array>
#include <cstring>

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
using M = hn::Mask<D>;

constexpr int kVectorRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 16;
constexpr bool kMasks = HWY_TARGET == HWY_AVX3;

// The tiles that are compiled here.
#ifdef OPTRAIL_PAIRS
constexpr bool kPairs = true;
constexpr bool IsOurs(int, int k_unroll) {
  return HWY_TARGET == HWY_AVX3 && k_unroll == OPTRAIL_K_UNROLL;
}
#else
constexpr bool kPairs = false;
constexpr bool IsOurs(int vectors, int k_unroll) {
  return k_unroll == OPTRAIL_K_UNROLL && (vectors > 2) == OPTRAIL_WIDE;
}
#endif

// Accumulators have to become registers, so the loops over them must vanish.
#define OPTRAIL_UNROLL _Pragma("GCC unroll 16")

// The values of A for the next steps. Rows of plain A, or columns of the
// other, are reached by odd multiples of the stride, which addresses can have
// once, twice, four and eight times, from one pointer: more of them would be
// kept in memory. The compiler must not see through them, or it would keep an
// address for every row and step.
template <int kRows, int kUnroll, bool kColumns>
class ValuesOfA {
 public:
  HWY_INLINE ValuesOfA(const float* a, int64_t stride)
      : next_(a), stride_(stride) {
    OPTRAIL_UNROLL for (int i = 0; i < kMultiples; ++i) {
      multiples_[i] = (2 * i + 1) * stride * int64_t{sizeof(float)};
      asm("" : "+r"(multiples_[i]));
    }
  }

  // The value of row i, `u` steps ahead; both are constants.
  HWY_INLINE float At(int i, int u) const {
    const int far = kColumns ? u : i;
    const int near = kColumns ? i : u;
    const int power = far & -far;
    const int64_t to_line = far == 0 ? 0 : multiples_[far / power / 2] * power;
    float value;  // pairs of bfloat16 may lie where no float does
    std::memcpy(&value, reinterpret_cast<const char*>(next_ + near) + to_line,
                sizeof(value));
    return value;
  }

  HWY_INLINE void Advance(int64_t steps) {
    Skip(kColumns ? steps * stride_ : steps);
  }

  HWY_INLINE void Skip(int64_t floats) {
    next_ += floats;
    asm("" : "+r"(next_));
  }

 private:
  static constexpr int kMultiples = (kColumns ? kUnroll : kRows) / 2;

  const float* next_;
  const int64_t stride_;
  int64_t multiples_[kMultiples + 1];  // in bytes
};

// acc + a * b. In assembly, since Highway 1.0.3 and the compiler's options for
// its targets lack AVX512_BF16.
HWY_INLINE V MultiplyAdd(V a, V b, V acc) {
#if defined(OPTRAIL_PAIRS) && HWY_TARGET == HWY_AVX3
  asm("vdpbf16ps %2, %1, %0" : "+v"(acc.raw) : "v"(b.raw), "v"(a.raw));
  return acc;
#else
  return hn::MulAdd(a, b, acc);
#endif
}

// acc += a column of A times a row of B, whose last vector is `last`. (To load
// a whole one with a mask takes a port that multiplies: 4% of a tile of 6 x 4.)
template <bool kEdge, int kRows, int kVectors, class Values>
HWY_INLINE void AddOuterProduct(const Values& a, int u,
                                const float* HWY_RESTRICT b, M last,
                                V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  V b_row[kVectors];
  OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
    b_row[j] = kEdge && j == kVectors - 1
                   ? hn::MaskedLoad(last, d, b + j * lanes)
                   : hn::LoadU(d, b + j * lanes);
  }
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    const V a_value = hn::Set(d, a.At(i, u));
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = MultiplyAdd(a_value, b_row[j], acc[i][j]);
    }
  }
}

// NaN stays.
HWY_INLINE V Relu(V v) {
  return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v);
}

// C = or += all of the tile.
template <bool kAccumulate, bool kRelu, int kRows, int kVectors>
HWY_INLINE void Store(const TileCall& call, float* c,
                      const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    float* const row = c + i * call.ldc;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      V sum = acc[i][j];
      if (kAccumulate) sum = hn::Add(sum, hn::LoadU(d, row + j * lanes));
      if (kRelu) sum = Relu(sum);
      hn::StoreU(sum, d, row + j * lanes);
    }
  }
}

// C = or += the tile, as far as C goes.
template <int kRows, int kVectors>
HWY_INLINE void StoreEdge(const TileCall& call, M last,
                          const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i == call.rows) return;
    float* const c = call.c + i * call.ldc;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      float* const to = c + j * lanes;
      V sum = acc[i][j];
      if (j < kVectors - 1) {
        if (call.accumulate) sum = hn::Add(sum, hn::LoadU(d, to));
        hn::StoreU(call.relu ? Relu(sum) : sum, d, to);
      } else {
        if (call.accumulate) sum = hn::Add(sum, hn::MaskedLoad(last, d, to));
        hn::BlendedStore(call.relu ? Relu(sum) : sum, last, d, to);
      }
    }
  }
}

template <int kRows, int kVectors, int kUnroll, bool kColumns, bool kEdge>
void MultiplyTiles(const TileCall& call) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const M last =
      hn::FirstN(d, static_cast<size_t>(call.columns - (kVectors - 1) * lanes));
  // All rows of C at once, at the beginning or as C is stored, would take the
  // buffers that loads of B need.
  const int64_t never = call.k + 1;
  const int64_t turns_per_row =
      call.prefetch_c
          ? std::max<int64_t>(1,
                              call.k / (kUnroll * (kRows + call.next_rows + 1)))
          : never;
  const float* next_copied = call.next;
  const float* next_a = call.next_a;
  const int64_t ldb = call.ldb;
  const int64_t ahead = call.prefetch * ldb;

  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    V acc[kRows][kVectors];
    const float* const shift =
        call.shift == nullptr
            ? nullptr
            : call.shift + (call.a_step != 0 ? 0 : tile * kVectors * lanes);
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      const V first = shift == nullptr ? hn::Zero(d)
                      : j < kVectors - 1
                          ? hn::LoadU(d, shift + j * lanes)
                          : hn::MaskedLoad(last, d, shift + j * lanes);
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) acc[i][j] = first;
    }
    float* const c_tile = call.c + tile * call.c_step;
    int64_t turns = turns_per_row;
    int64_t rows_of_c = kRows;
    int64_t rows_left = kRows + call.next_rows;
    const float* prefetched = c_tile;

    ValuesOfA<kRows, kUnroll, kColumns> a(call.a + tile * call.a_step,
                                          call.lda);
    const float* HWY_RESTRICT b = call.b + tile * call.b_step;
    const float* next = next_a;
    int64_t left = call.k;
    for (; left >= kUnroll; left -= kUnroll) {
      if (ahead != 0) {
        OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
          OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
            __builtin_prefetch(b + ahead + u * ldb + j * lanes);
          }
        }
      }
      if (kColumns && next != nullptr) {
        // Where a line begins within a column, it is that of the last row.
        OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
          __builtin_prefetch(next + kRows - 1);
          next += call.lda;
        }
      }
      if (!kColumns && next != nullptr) {
        if (reinterpret_cast<uintptr_t>(next) % 64 < kUnroll * sizeof(float)) {
          OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
            __builtin_prefetch(next + i * call.lda);
          }
        }
        next += kUnroll;
      }
      if (--turns == 0) {
        if (rows_of_c > 0) {
          OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
            __builtin_prefetch(prefetched + j * lanes, 1);
          }
          prefetched = --rows_of_c > 0 ? prefetched + call.ldc : next_copied;
        } else {
          OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
            __builtin_prefetch(prefetched + j * lanes, 0, /*locality, L2:*/ 2);
          }
          prefetched += call.next_stride;
        }
        turns = --rows_left > 0 ? turns_per_row : never;
      }
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        AddOuterProduct<kEdge>(a, u, b, last, acc);
        b += ldb;
        asm("" : "+r"(b));
      }
      a.Advance(kUnroll);
    }
    for (; left > 0; --left) {
      AddOuterProduct<kEdge>(a, 0, b, last, acc);
      b += ldb;
      a.Advance(1);
    }
    next_copied += call.next_rows * call.next_stride;
    if (next_a != nullptr) {
      next_a = call.a_step != 0 ? next_a + call.a_step : nullptr;
    }

    if (call.rows < kRows || call.columns < kVectors * lanes) {
      StoreEdge(call, last, acc);
      return;
    }
    if (call.relu) {
      call.accumulate ? Store<true, true>(call, c_tile, acc)
                      : Store<false, true>(call, c_tile, acc);
    } else {
      call.accumulate ? Store<true, false>(call, c_tile, acc)
                      : Store<false, false>(call, c_tile, acc);
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
    tile.of_pairs = kPairs;
    tile.columns_of_a = &MultiplyTiles<kRows, kVectors, kUnroll, true, false>;
    tile.plain_a = &MultiplyTiles<kRows, kVectors, kUnroll, false, false>;
    if constexpr (kMasks) {
      tile.columns_of_a_edge =
          &MultiplyTiles<kRows, kVectors, kUnroll, true, true>;
      tile.plain_a_edge = &MultiplyTiles<kRows, kVectors, kUnroll, false, true>;
    }
  }
  return tile;
}

RegisterTile Instantiation(int index) {
  switch (index) {
#define OPTRAIL_CASE(index, rows, vectors, k_unroll) \
  case index:                                        \
    if constexpr (IsOurs(vectors, k_unroll)) {       \
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

// [rows][vectors]; any more do not fit into registers.
using TileTable = std::array<std::array<RegisterTile, 9>, 33>;

TileTable AllTiles() {
  TileTable tiles;
  MatmulKnobs knobs;
  knobs.k_unroll = OPTRAIL_K_UNROLL;
  for (knobs.mr = 1; knobs.mr < tiles.size(); ++knobs.mr) {
    for (knobs.nr_vectors = 1; knobs.nr_vectors < tiles[0].size();
         ++knobs.nr_vectors) {
      tiles[knobs.mr][knobs.nr_vectors] =
          Instantiation(knobs.InstantiationIndex());
    }
  }
  return tiles;
}

RegisterTile FindForTarget(int rows, int vectors) {
  static const TileTable tiles = AllTiles();
  if (rows < 1 || rows >= tiles.size() || vectors < 1 ||
      vectors >= tiles[0].size()) {
    return RegisterTile();
  }
  return tiles[rows][vectors];
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

#ifdef OPTRAIL_PAIRS
RegisterTile FindPairTile(int rows, int vectors) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16")) return RegisterTile();
  return HWY_DYNAMIC_DISPATCH(FindForTarget)(rows, vectors);
}
#else
template <>
RegisterTile FindTileOf<OPTRAIL_K_UNROLL, OPTRAIL_WIDE>(int rows, int vectors) {
  return HWY_DYNAMIC_DISPATCH(FindForTarget)(rows, vectors);
}

#if OPTRAIL_K_UNROLL == 1 && !OPTRAIL_WIDE
int TileLanes() { return HWY_DYNAMIC_DISPATCH(LanesForTarget)(); }
#endif
#endif

}  // namespace optrail::ops
#endif  // HWY_ONCE
