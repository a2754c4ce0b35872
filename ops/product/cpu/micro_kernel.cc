// Compiled once for each OPTRAIL_K_UNROLL and OPTRAIL_WIDE, whether tiles have
// more than two vectors, and once with OPTRAIL_PAIRS, of bfloat16.

#include "ops/product/cpu/micro_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/cpu/micro_kernel.cc"
#include "ops/lib/simd_targets.h"
//
#include "ops/product/cpu/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops {
namespace HWY_NAMESPACE {
namespace {

// acc += `kStreams` times `span` outer products of few rows, which are read
// from as many places at a time: what a core reads from memory in one line it
// reads 5 to 20% slower than in several.
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
        if constexpr (kKeeps && kRows > 1) KeepInRegister(b_row[j]);
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

// Prefetches what the next tile reads of A in the steps at `next`. Returns the
// address of the steps after them.
template <int kRows, int kUnroll, bool kColumns>
HWY_INLINE const float* PrefetchA(const TileCall& call, const float* next) {
  if (kColumns) {
    // Where a line begins within a column, it is that of the last row.
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      __builtin_prefetch(next + kRows - 1);
      next += call.lda;
    }
    return next;
  }
  if (reinterpret_cast<uintptr_t>(next) % 64 < kUnroll * sizeof(float)) {
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      __builtin_prefetch(next + i * call.lda);
    }
  }
  return next + kUnroll;
}

template <int kRows, int kVectors, int kUnroll, bool kColumns, bool kEdge>
void MultiplyTiles(const TileCall& call, const float* first_a,
                   const float* first_b, float* first_c) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const M last =
      hn::FirstN(d, static_cast<size_t>(call.columns - (kVectors - 1) * lanes));
  Prefetches<kRows, kVectors> prefetches(call, call.k / kUnroll);
  const float* next_a = call.next_a;
  const int64_t ldb = call.ldb;
  const int64_t ahead = call.prefetch * ldb;
  // Narrow tiles have several sets of sums for steps that follow each other, or
  // they would wait for one another.
  constexpr int kSums = kRows * kVectors;
  // Whole vectors reach into the next rows of B, but not beyond the last one.
  const int64_t beyond = kVectors * lanes - call.columns;
  const int64_t masked = kEdge ? std::min(call.k, (beyond + ldb - 1) / ldb) : 0;
  constexpr int kSets = kUnroll == 1 || kSums > 8 ? 1 : kSums > 2 ? 2 : 4;

  for (int64_t tile = 0; tile < call.tiles; ++tile) {
    V acc[kSets][kRows][kVectors];
    const int64_t column = call.a_step != 0 ? 0 : tile * kVectors * lanes;
    const float* const scale =
        call.scale == nullptr ? nullptr : call.scale + column;
    const float* const shift =
        call.shift == nullptr ? nullptr : call.shift + column;
    BeginSums(scale, shift, last, acc[0]);
    OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
      BeginSums(nullptr, nullptr, last, acc[s]);
    }
    float* const c_tile = first_c + tile * call.c_step;
    prefetches.BeginTile(c_tile);
    ValuesOfA<kRows, kUnroll, kColumns> a(first_a + tile * call.a_step,
                                          call.lda);
    const float* HWY_RESTRICT b = first_b + tile * call.b_step;
    const float* next = next_a;
    int64_t left = call.k - masked;
    if constexpr (kRows <= 8 && kUnroll > 1 && !kEdge) {
      if (call.in_streams) {
        constexpr int kStreams = kRows == 1 ? 4 : 2;
        const int64_t span = call.k / kStreams;
        AddInStreams<kStreams, kColumns>(call, first_a + tile * call.a_step, b,
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
      if (next != nullptr) {
        next = PrefetchA<kRows, kUnroll, kColumns>(call, next);
      }
      prefetches.Turn();
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
        AddOuterProduct<false>(a, u, b, last, acc[u % kSets]);
        b += ldb;
        asm("" : "+r"(b));
      }
      a.Advance(kUnroll);
    }
    for (; left > 0; --left) {
      AddOuterProduct<false>(a, 0, b, last, acc[0]);
      b += ldb;
      a.Advance(1);
    }
    for (int64_t p = 0; kEdge && p < masked; ++p) {
      AddOuterProduct<true>(a, 0, b, last, acc[0]);
      b += ldb;
      a.Advance(1);
    }
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
    StoreSums(call, /*first=*/0, c_tile, tile * call.rounded_step, last, sums);
  }
}

// Steps of a segment, without the first kFirst rows and the last kLast.
template <int kFirst, int kLast, int kSets, int kRows, int kVectors,
          class Values>
HWY_INLINE void AddSteps(int64_t steps, int64_t ldb, M last, Values& a,
                         const float*& b,
                         Prefetches<kRows, kVectors>& prefetches,
                         V (&acc)[kSets][kRows][kVectors]) {
  constexpr int kUnroll = OPTRAIL_K_UNROLL;
  for (; steps >= kUnroll; steps -= kUnroll) {
    prefetches.Turn();
    OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) {
      AddOuterProduct<false, kFirst, kLast>(a, u, b, last, acc[u % kSets]);
      b += ldb;
      asm("" : "+r"(b));
    }
    a.Advance(kUnroll);
  }
  for (; steps > 0; --steps) {
    AddOuterProduct<false, kFirst, kLast>(a, 0, b, last, acc[0]);
    b += ldb;
    a.Advance(1);
  }
}

constexpr int kMostLanes = HWY_MAX_BYTES / sizeof(float);

// Sums of a tile from row `begin` of a line on, whose end is more than to store
// them. Not inlined: loops over steps would lack the registers that this takes,
// and keep sums in memory (7% of convolutions of bfloat16).
template <int kRows, int kVectors>
HWY_NOINLINE void EndLine(
    const TileCall& call, float* first_c, int64_t first, int64_t begin,
    const float (&values)[kRows * kVectors * kMostLanes]) {
  const int64_t lanes = hn::Lanes(D());
  const M last = hn::FirstN(
      D(), static_cast<size_t>(call.columns - (kVectors - 1) * lanes));
  V acc[kRows][kVectors];
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = hn::LoadU(D(), values + (i * kVectors + j) * lanes);
    }
  }
  if (call.scale == nullptr && call.shift != nullptr) {
    OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
      const V plus = LoadColumns<kVectors>(call.shift, j, last);
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        acc[i][j] = hn::Add(acc[i][j], plus);
      }
    }
  }
  float* const c = first_c + begin * call.ldc;
  EndSums(call, c, call.scale, call.shift, last, acc);
  StoreSums(call, first, c, begin * call.ld_rounded, last, acc);
}

template <int kRows, int kVectors>
void MultiplySegments(const TileCall& call, const float* first_a,
                      const float* first_b, float* first_c) {
  const int64_t lanes = hn::Lanes(D());
  const M last = hn::FirstN(
      D(), static_cast<size_t>(call.columns - (kVectors - 1) * lanes));
  const bool plain = !call.accumulate && call.scale == nullptr &&
                     call.shift == nullptr && !call.relu &&
                     (!kPairs || call.rounded == nullptr);
  // Narrow tiles have several sets of sums, as MultiplyTiles has.
  constexpr int kSums = kRows * kVectors;
  constexpr int kSets = kSums >= 8 ? 1 : kSums > 3 ? 2 : 4;
  Prefetches<kRows, kVectors> prefetches(
      call, call.segments * call.k / OPTRAIL_K_UNROLL);
  for (int64_t done = 0; done < call.rows; done += kRows) {
    const int64_t begin = std::min(done, call.rows - kRows);
    const int64_t first_lacks = begin == 0 ? call.first_lacks : 0;
    const int64_t last_lacks = begin + kRows == call.rows ? call.last_lacks : 0;
    const int64_t all_have = call.k - first_lacks - last_lacks;
    float* const c = first_c + begin * call.ldc;
    prefetches.BeginTile(c);
    ValuesOfA<kRows, OPTRAIL_K_UNROLL, /*kColumns=*/false> a(
        first_a + begin * call.lda, call.lda);
    const float* b = first_b;
    V acc[kSets][kRows][kVectors];
    OPTRAIL_UNROLL for (int s = 0; s < kSets; ++s) {
      BeginSums(nullptr, nullptr, last, acc[s]);
    }
    for (int64_t segment = 0; segment < call.segments; ++segment) {
      AddSteps<1, 0>(first_lacks, call.ldb, last, a, b, prefetches, acc);
      AddSteps<0, 0>(all_have, call.ldb, last, a, b, prefetches, acc);
      AddSteps<0, 1>(last_lacks, call.ldb, last, a, b, prefetches, acc);
      if constexpr (kPairs) {
        if (call.ends_in_half) {
          AddOuterProduct<false, 0, 0, /*kHalf=*/true>(a, 0, b, last, acc[0]);
          b += call.ldb;
        }
      }
      a.Skip(call.segment_step - call.k);
    }
    V(&sums)[kRows][kVectors] = acc[0];
    OPTRAIL_UNROLL for (int s = 1; s < kSets; ++s) {
      OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
        OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
          sums[i][j] = hn::Add(sums[i][j], acc[s][i][j]);
        }
      }
    }
    if (plain && done == begin) {
      if (call.columns == kVectors * lanes) {
        Store(call, c, sums);
      } else {
        StoreMasked(call, c, last, sums);
      }
      continue;
    }
    HWY_ALIGN float values[kRows * kVectors * kMostLanes];
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      OPTRAIL_UNROLL for (int j = 0; j < kVectors; ++j) {
        hn::Store(sums[i][j], D(), values + (i * kVectors + j) * lanes);
      }
    }
    EndLine<kRows, kVectors>(call, first_c, done - begin, begin, values);
  }
}

// Accumulators, a row of B and one broadcast value.
template <int kRows, int kVectors, int kUnroll>
RegisterTile Instantiate() {
  RegisterTile tile;
  // Without a broadcast value, which a multiplication can load by itself.
  if constexpr (kUnroll > 1 && HasSegments(kVectors) &&
                (kRows + 1) * kVectors <=
                    kVectorRegisters - (kVectorRegisters < 32 ? 1 : 0)) {
    tile.rows = kRows;
    tile.columns = kVectors * static_cast<int>(hn::Lanes(D()));
    tile.k_unroll = kUnroll;
    tile.of_pairs = kPairs;
    tile.segments = &MultiplySegments<kRows, kVectors>;
  }
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
using TileTable = std::array<std::array<RegisterTile, 13>, 15>;

template <int kRows, int kVectors>
void AddTile(TileTable& tiles) {
  if constexpr (IsOurs(kVectors)) {
    tiles[kRows][kVectors] = Instantiate<kRows, kVectors, OPTRAIL_K_UNROLL>();
  }
}

// These tiles have more than four vectors.
template <int kRows, int... kMore>
void AddWideTiles(TileTable& tiles, std::integer_sequence<int, kMore...>) {
  (AddTile<kRows, 5 + kMore>(tiles), ...);
}

template <int... kRows>
TileTable AllTiles() {
  TileTable tiles;
  (AddTile<kRows, 1>(tiles), ...);
  (AddTile<kRows, 2>(tiles), ...);
  (AddTile<kRows, 3>(tiles), ...);
  (AddTile<kRows, 4>(tiles), ...);
  // Of few rows of A, long pieces of B's rows: lines that follow each other in
  // memory.
  if constexpr (OPTRAIL_K_UNROLL == 4 && !kPairs) {
    AddWideTiles<1>(tiles, std::make_integer_sequence<int, 8>());
    AddWideTiles<2>(tiles, std::make_integer_sequence<int, 4>());
    AddWideTiles<3>(tiles, std::make_integer_sequence<int, 3>());
    AddWideTiles<4>(tiles, std::make_integer_sequence<int, 2>());
    AddWideTiles<5>(tiles, std::make_integer_sequence<int, 1>());
  }
  return tiles;
}

RegisterTile FindForTarget(int rows, int vectors) {
  static const TileTable tiles = AllTiles<1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14>();
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
