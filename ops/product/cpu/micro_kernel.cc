// Compiled once for each OPTRAIL_K_UNROLL and OPTRAIL_WIDE, whether tiles have
// more than two vectors, and once with OPTRAIL_PAIRS, of bfloat16.

#include "ops/product/cpu/micro_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

// Targets between plain C++ and AVX2 cost compile time and serve hardly anyone.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/micro_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

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
constexpr bool IsOurs(int) { return HWY_TARGET == HWY_AVX3; }
#else
constexpr bool kPairs = false;
constexpr bool IsOurs(int vectors) { return (vectors > 2) == OPTRAIL_WIDE; }
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

// The same for `kStreams` times `span` steps of few rows, which are walked from
// as many places at a time: what a core reads from memory in one line it reads
// 5 to 20% slower than in several.
template <int kStreams, bool kColumns, int kSets, int kRows, int kVectors>
HWY_INLINE void AddInStreams(const TileCall& call, const float* a,
                             const float* b, int64_t span,
                             V (&acc)[kSets][kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t p = 0; p < span; ++p) {
    OPTRAIL_UNROLL for (int s = 0; s < kStreams; ++s) {
      const int64_t step = s * span + p;
      V b_row[kVectors];
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        b_row[j] = hn::LoadU(d, b + step * call.ldb + j * lanes);
      }
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        float value;  // as in ValuesOfA
        std::memcpy(&value,
                    a + (kColumns ? step * call.lda + i : i * call.lda + step),
                    sizeof(value));
        const V a_value = hn::Set(d, value);
        OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
          acc[s % kSets][i][j] =
              MultiplyAdd(a_value, b_row[j], acc[s % kSets][i][j]);
        }
      }
    }
  }
}

// NaN stays.
HWY_INLINE V Relu(V v) {
  return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(D())), v);
}

// Vector j of the tile's columns.
template <int kVectors>
HWY_INLINE V LoadColumns(const float* from, int j, M last) {
  const D d;
  from += j * hn::Lanes(d);
  return j < kVectors - 1 ? hn::LoadU(d, from) : hn::MaskedLoad(last, d, from);
}

// What becomes of the sums before they are stored. `scale` and `shift` are
// those of the tile's columns; a shift alone is in the sums already.
template <int kRows, int kVectors>
HWY_INLINE void EndSums(const TileCall& call, const float* c,
                        const float* scale, const float* shift, M last,
                        V (&acc)[kRows][kVectors]) {
  if (call.accumulate) {
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      if (i == call.rows) break;
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = hn::Add(acc[i][j],
                            LoadColumns<kVectors>(c + i * call.ldc, j, last));
      }
    }
  }
  if (scale != nullptr) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      const V times = LoadColumns<kVectors>(scale, j, last);
      const V plus = shift == nullptr ? hn::Zero(D())
                                      : LoadColumns<kVectors>(shift, j, last);
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        acc[i][j] = hn::MulAdd(acc[i][j], times, plus);
      }
    }
  }
  if (call.relu) {
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        acc[i][j] = Relu(acc[i][j]);
      }
    }
  }
}

// C = all of the tile.
template <int kRows, int kVectors>
HWY_INLINE void Store(const TileCall& call, float* c,
                      const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::StoreU(acc[i][j], d, c + i * call.ldc + j * lanes);
    }
  }
}

// C = the tile, as far as C goes.
template <int kRows, int kVectors>
HWY_INLINE void StoreEdge(const TileCall& call, float* c, M last,
                          const V (&acc)[kRows][kVectors]) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i == call.rows) return;
    float* const row = c + i * call.ldc;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors - 1; ++j) {
      hn::StoreU(acc[i][j], d, row + j * lanes);
    }
    hn::BlendedStore(acc[i][kVectors - 1], last, d,
                     row + (kVectors - 1) * lanes);
  }
}

// The tile, as far as C goes, as bfloat16.
template <int kRows, int kVectors>
HWY_INLINE void StoreRounded(const TileCall& call, uint16_t* rounded,
                             const V (&acc)[kRows][kVectors]) {
#if defined(OPTRAIL_PAIRS) && HWY_TARGET == HWY_AVX3
  const HWY_FULL(uint16_t) d_two;
  const hn::Rebind<uint16_t, D> d_one;
  const int64_t lanes = hn::Lanes(d_one);
  const int64_t of_last = call.columns - (kVectors - 1) * lanes;
  const auto last = hn::FirstN(d_one, static_cast<size_t>(of_last));
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    if (i == call.rows) return;
    uint16_t* const row = rounded + i * call.ld_rounded;
    // A line of two vectors, but for the last one if that is not whole.
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; j += 2) {
      const V& low = acc[i][j];
      const V& high = acc[i][std::min(j + 1, kVectors - 1)];
      if (j + 2 < kVectors || (j + 2 == kVectors && of_last == lanes)) {
        hn::Vec<HWY_FULL(uint16_t)> line;
        asm("vcvtne2ps2bf16 %1, %2, %0"
            : "=v"(line.raw)
            : "v"(low.raw), "v"(high.raw));
        hn::StoreU(line, d_two, row + j * lanes);
        continue;
      }
      hn::Vec<decltype(d_one)> half;
      asm("vcvtneps2bf16 %1, %0" : "=v"(half.raw) : "v"(low.raw));
      if (j + 2 == kVectors) {
        hn::StoreU(half, d_one, row + j * lanes);
        asm("vcvtneps2bf16 %1, %0" : "=v"(half.raw) : "v"(high.raw));
      }
      hn::BlendedStore(half, last, d_one, row + (kVectors - 1) * lanes);
    }
  }
#endif
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
  // Narrow tiles have several sets of sums for steps that follow each other, or
  // they would wait for one another.
  constexpr int kSums = kRows * kVectors;
  constexpr int kSets = kUnroll == 1 || kSums > 8 ? 1 : kSums > 2 ? 2 : 4;

  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    V acc[kSets][kRows][kVectors];
    const int64_t column = call.a_step != 0 ? 0 : tile * kVectors * lanes;
    const float* const scale =
        call.scale == nullptr ? nullptr : call.scale + column;
    const float* const shift =
        call.shift == nullptr ? nullptr : call.shift + column;
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      const V first = shift == nullptr || scale != nullptr
                          ? hn::Zero(d)
                          : LoadColumns<kVectors>(shift, j, last);
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        acc[0][i][j] = first;
        OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
          acc[s][i][j] = hn::Zero(d);
        }
      }
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
    if constexpr (kRows <= 8 && kUnroll > 1 && !kEdge) {
      if (call.in_streams) {
        constexpr int kStreams = kRows == 1 ? 4 : 2;
        const int64_t span = call.k / kStreams;
        AddInStreams<kStreams, kColumns>(call, call.a + tile * call.a_step, b,
                                         span, acc);
        left -= kStreams * span;
        b += kStreams * span * ldb;
        a.Advance(kStreams * span);
      }
    }
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
        AddOuterProduct<kEdge>(a, u, b, last, acc[u % kSets]);
        b += ldb;
        asm("" : "+r"(b));
      }
      a.Advance(kUnroll);
    }
    for (; left > 0; --left) {
      AddOuterProduct<kEdge>(a, 0, b, last, acc[0]);
      b += ldb;
      a.Advance(1);
    }
    next_copied += call.next_rows * call.next_stride;
    if (next_a != nullptr) {
      next_a = call.a_step != 0 ? next_a + call.a_step : nullptr;
    }

    V(&sums)[kRows][kVectors] = acc[0];
    OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
          sums[i][j] = hn::Add(sums[i][j], acc[s][i][j]);
        }
      }
    }
    EndSums(call, c_tile, scale, shift, last, sums);
    if (kPairs && call.rounded != nullptr) {
      StoreRounded(call, call.rounded + tile * call.rounded_step, sums);
    } else if (call.rows < kRows || call.columns < kVectors * lanes) {
      StoreEdge(call, c_tile, last, sums);
    } else {
      Store(call, c_tile, sums);
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

// [rows][vectors]; any more do not fit into registers.
using TileTable = std::array<std::array<RegisterTile, 5>, 15>;

template <int kRows, int kVectors>
void AddTile(TileTable& tiles) {
  if constexpr (IsOurs(kVectors)) {
    tiles[kRows][kVectors] = Instantiate<kRows, kVectors, OPTRAIL_K_UNROLL>();
  }
}

template <int... kRows>
TileTable AllTiles() {
  TileTable tiles;
  (AddTile<kRows, 1>(tiles), ...);
  (AddTile<kRows, 2>(tiles), ...);
  (AddTile<kRows, 3>(tiles), ...);
  (AddTile<kRows, 4>(tiles), ...);
  return tiles;
}

RegisterTile FindForTarget(int rows, int vectors) {
  static const TileTable tiles = AllTiles<1, 2, 4, 6, 8, 9, 12, 14>();
  if (rows < 1 || rows >= static_cast<int>(tiles.size()) || vectors < 1 ||
      vectors >= static_cast<int>(tiles[0].size())) {
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
