#include "ops/product/cpu/block_walk.h"

#include <algorithm>
#include <numeric>

namespace optrail::ops {
namespace {

// The most tiles of one call to the micro-kernel.
constexpr int64_t kMostTiles = 32;

// How many tiles, one below the other, are finished together while they are in
// L1: rows of C that are a power of two apart share few sets of it. Eight tiles
// of 6 x 64 whose rows are 512 floats apart take all of its twelve ways twice.
int64_t MostTilesToFinish(int64_t rows, int64_t ldc) {
  constexpr int64_t kSetsFloats = 4096 / sizeof(float);  // from line to line
  constexpr int64_t kWays = 9;                           // and some for A and B
  const int64_t places = kSetsFloats / std::gcd(ldc, kSetsFloats);
  return std::clamp<int64_t>(kWays * places / rows, 1, kMostTiles);
}

}  // namespace

BlockWalk::BlockWalk(const Blocking& blocking, const Tiles& tiles,
                     const ProductSize& size, const Panels& a, const Panels& b,
                     const Result& c, NextBlock& next_a, NextBlock& next_b)
    : blocking_(blocking),
      tiles_(tiles),
      size_(size),
      a_(a),
      b_(b),
      c_(c),
      next_a_(next_a),
      next_b_(next_b),
      finishes_(!EndsInRegisters(c.epilogue)),
      row_panels_(CeilDiv(size.m, tiles.rows)),
      whole_rows_(size.m / tiles.rows),
      whole_columns_(size.n / tiles.columns),
      a_stays_(blocking.a_panel_stays || row_panels_ == 1),
      most_tiles_(finishes_ && !a_stays_
                      ? MostTilesToFinish(tiles.rows, c.stride)
                      : kMostTiles) {
  ragged_.k = size.k;
  ragged_.ldc = c.stride;
  ragged_.accumulate = c.accumulate;
  ragged_.relu = !finishes_ && c.epilogue.activation == Activation::kRelu;
  ragged_.prefetch_c = blocking.prefetch_c;
  ragged_.prefetch = blocking.prefetch;
  ragged_.in_streams = blocking.in_streams;
  ragged_.ld_rounded = c.rounded_stride;
  if (a_stays_) {
    ragged_.b_step = b.step();
    ragged_.c_step = tiles.columns;
    ragged_.rounded_step = tiles.columns;
  } else {
    ragged_.a_step = a.step();
    ragged_.c_step = tiles.rows * c.stride;
    ragged_.rounded_step = tiles.rows * c.rounded_stride;
  }
  whole_ = ragged_;
  whole_.lda = a.is_packed(0) ? tiles.rows : a.plain_stride;
  whole_.ldb = b.is_packed(0) ? tiles.columns : b.plain_stride;
  whole_.rows = tiles.rows;
  whole_.columns = tiles.columns;
  multiply_whole_ = a.is_packed(0) || a.by_columns ? blocking.tile.columns_of_a
                                                   : blocking.tile.plain_a;
}

void BlockWalk::Run() {
  const int64_t column_panels = CeilDiv(size_.n, tiles_.columns);
  if (a_stays_) {
    for (int64_t i = 0; i < row_panels_; ++i) {
      for (int64_t j = 0; j < column_panels;) {
        j += MultiplyTiles(i, j, whole_columns_ - j);
      }
    }
  } else {
    for (int64_t j = 0; j < column_panels; ++j) {
      for (int64_t i = 0; i < row_panels_;) {
        i += MultiplyTiles(i, j, whole_rows_ - i);
      }
    }
  }
}

// `along`: how many whole tiles there are in the direction of the inner loop.
// Returns how many were computed.
int64_t BlockWalk::MultiplyTiles(int64_t i, int64_t j, int64_t along) {
  if (i < whole_rows_ && j < whole_columns_) {
    whole_.tiles = std::min(along, most_tiles_);
    return MultiplyPanels(whole_, multiply_whole_, i, j);
  }
  // The last rows meet all whole columns, and the last columns all whole rows.
  const bool more = a_stays_ ? j < whole_columns_ : i < whole_rows_;
  ragged_.tiles = more ? std::min(along, most_tiles_) : 1;
  const RegisterTile& tile = tiles_.For(i < whole_rows_, j < whole_columns_);
  ragged_.rows = std::min<int64_t>(tiles_.rows, size_.m - i * tiles_.rows);
  ragged_.columns =
      std::min<int64_t>(tiles_.columns, size_.n - j * tiles_.columns);
  ragged_.lda = a_.is_packed(i) ? tile.rows : a_.plain_stride;
  ragged_.ldb = b_.is_packed(j) ? tile.columns : b_.plain_stride;
  const bool by_columns = a_.is_packed(i) || a_.by_columns;
  const bool edge = ragged_.columns < tile.columns && !b_.is_packed(j) &&
                    !blocking_.b_in_panels;
  return MultiplyPanels(
      ragged_,
      by_columns ? (edge ? tile.columns_of_a_edge : tile.columns_of_a)
                 : (edge ? tile.plain_a_edge : tile.plain_a),
      i, j);
}

// Multiplies panel i of A with panel j of B, for which `call` has the rest, and
// as many of the next as it has tiles.
int64_t BlockWalk::MultiplyPanels(TileCall& call, TileFunction multiply,
                                  int64_t i, int64_t j) {
  float* const c = c_.data + i * tiles_.rows * c_.stride + j * tiles_.columns;
  // While the first tile of these rows is computed, or every one.
  call.next_a = blocking_.prefetch_a && i + 1 < row_panels_ &&
                        !a_.is_packed(i + 1) && (j == 0 || !a_stays_)
                    ? a_.panel(i + 1)
                    : nullptr;
  (next_a_.is_near() ? next_b_ : next_a_).PrefetchDuring(call);
  const Epilogue ending = c_.epilogue.From(j * tiles_.columns);
  call.scale = finishes_ ? nullptr : ending.scale;
  call.shift = finishes_ ? nullptr : ending.shift;
  if (c_.rounded != nullptr) {
    call.rounded =
        c_.rounded + i * tiles_.rows * c_.rounded_stride + j * tiles_.columns;
  }
  multiply(call, a_.panel(i), b_.panel(j), c);
  if (finishes_) {
    const bool down = call.a_step != 0;
    ScaleShiftActivate(ending, c, down ? call.rows * call.tiles : call.rows,
                       down ? call.columns : call.columns * call.tiles,
                       c_.stride);
  }
  return call.tiles;
}

}  // namespace optrail::ops
