#ifndef OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_H_
#define OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_H_

// The micro-kernel of a blocked matrix product: a tile of C, `rows` by
// `vectors` SIMD vectors, is kept in registers while k steps of rank-one
// updates are added to it. Each step broadcasts one value per row of A and
// loads `vectors` vectors of B. A call computes some tiles one after the other:
// with 64 steps to a tile, a call for each took 4% longer.
//
// Values of A are broadcast one at a time, so that A may lie row by row, or
// column by column as in a packed panel and where it is stored transposed:
//
//   a[i * lda + p]   plain
//   a[p * lda + i]   columns: packed with lda = rows, or as it is stored
//
// Steps may come in segments that are apart in A, such as the rows of a
// convolution's filter under which pixels are neighbours.

#include <cstdint>

namespace optrail::ops {

// A call's operands are passed apart, so that a TileCall can be written down
// once for many calls.

struct TileCall {
  int64_t k = 0;
  int64_t lda = 0;
  const float* next_a = nullptr;  // to be prefetched, lies as A does
  int64_t ldb = 0;
  int64_t ldc = 0;
  // The part of the tile that C has: the rest is not written. Each vector has
  // at least one column: the last columns are a tile of fewer vectors
  // (tiles.h).
  int64_t rows = 0;
  int64_t columns = 0;
  bool accumulate = false;  // C += instead of C =
  // What ends whole sums, of the tile's columns: times scale (nullptr: 1), plus
  // shift (nullptr: 0), and then, with relu, what is below 0 becomes 0.
  const float* scale = nullptr;
  const float* shift = nullptr;
  bool relu = false;
  // FindPairTile's tiles write rounded sums here; nullptr: sums go to C.
  uint16_t* rounded = nullptr;
  int64_t ld_rounded = 0;
  // Where whole tiles follow each other: floats from what belongs to one to
  // what belongs to the next. next_a moves with A, and is that of the first
  // tile alone if that stays; scale and shift move with B.
  int64_t tiles = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
  int64_t rounded_step = 0;
  // K segments, of MultiplySegments: `segments` times k steps of plain A, which
  // begin `segment_step` floats apart; those of B follow each other. In every
  // segment the first row lacks the first `first_lacks` steps and the last row
  // the last `last_lacks`: together at most all. With `ends_in_half` a segment
  // of pairs has one more step, whose second half counts as zero.
  int64_t segments = 1;
  int64_t segment_step = 0;
  int64_t first_lacks = 0;
  int64_t last_lacks = 0;
  bool ends_in_half = false;
  // While the sums grow, rows of C are prefetched, one at a time, and then
  // `next_rows` for each tile of what is copied next: as wide, `next_stride`
  // apart.
  bool prefetch_c = false;
  const float* next = nullptr;
  int64_t next_stride = 0;
  int64_t next_rows = 0;
  int64_t prefetch = 0;  // steps of k ahead for rows of B; 0 for none
  // Tiles of a skinny A read B from several places at a time. Its columns have
  // no edge.
  bool in_streams = false;
};

using TileFunction = void (*)(const TileCall&, const float* a, const float* b,
                              float* c);

struct RegisterTile {
  int rows = 0;
  int columns = 0;  // floats: vectors times the lanes of this machine's SIMD
  int k_unroll = 0;
  bool of_pairs = false;  // FindPairTile's
  // Both read all rows of the tile from A and all columns from B. nullptr if
  // this machine has too few registers for the tile.
  TileFunction columns_of_a = nullptr;
  TileFunction plain_a = nullptr;
  // The same for the edge of B, of which they read TileCall::columns; nullptr
  // where vectors have no masks.
  TileFunction columns_of_a_edge = nullptr;
  TileFunction plain_a_edge = nullptr;
  // Sums over K segments, of all TileCall::rows, which are at least those of a
  // tile: a last tile that would go beyond them begins earlier, and leaves the
  // rows that are there. B is in panels. nullptr for sizes that nothing needs.
  TileFunction segments = nullptr;
};

// The tile for the best SIMD target of this machine. `plain_a` is nullptr
// where no tile of that size was instantiated, or it would not fit into the
// registers. Remembered from the first call on; compiled once for each k_unroll
// that there is, tiles of more than two vectors apart, in parallel.
template <int kUnroll, bool kWide>
RegisterTile FindTileOf(int rows, int vectors);
template <>
RegisterTile FindTileOf<1, false>(int rows, int vectors);
template <>
RegisterTile FindTileOf<1, true>(int rows, int vectors);
template <>
RegisterTile FindTileOf<4, false>(int rows, int vectors);
template <>
RegisterTile FindTileOf<4, true>(int rows, int vectors);

inline RegisterTile FindRegisterTile(int rows, int vectors, int k_unroll) {
  const bool wide = vectors > 2;
  if (k_unroll == 1) {
    return wide ? FindTileOf<1, true>(rows, vectors)
                : FindTileOf<1, false>(rows, vectors);
  }
  if (k_unroll == 4) {
    return wide ? FindTileOf<4, true>(rows, vectors)
                : FindTileOf<4, false>(rows, vectors);
  }
  return RegisterTile();
}

// SIMD lanes of single precision on this machine.
int TileLanes();

// The tile whose elements of A and B are pairs of bfloat16, two steps of k of
// which an instruction (AVX512_BF16) multiplies and adds to a float of C: k,
// lda and ldb count pairs. Denormals are taken for 0. `plain_a` is nullptr
// where this machine has no such instruction, too.
RegisterTile FindPairTile(int rows, int vectors);

// One of the same kind.
inline RegisterTile FindTileLike(const RegisterTile& tile, int rows,
                                 int vectors) {
  return tile.of_pairs ? FindPairTile(rows, vectors)
                       : FindRegisterTile(rows, vectors, tile.k_unroll);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_MICRO_KERNEL_H_
