#ifndef OPTRAIL_OPS_CONV2D_LINE_TILES_H_
#define OPTRAIL_OPS_CONV2D_LINE_TILES_H_

// Which register tiles compute a line of output pixels of a convolution
// soonest, by the estimated cycles of each.
//
//   const LineTiles tiles = FindTilesForFilters(
//       /*pixels=*/14, /*vectors=*/2, /*of_pairs=*/false, /*length=*/7,
//       /*filter_vectors=*/4, /*steps=*/576);
//
// Lengths are pixels, steps those of a sum, as the micro-kernel counts them.
// Without a tile that this machine has, `tile.segments` is nullptr.
// Thread-safe.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ops/product/cpu/micro_kernel.h"

namespace optrail::ops {

// The tiles that compute a line of pixels: `tile` the first `whole` ones, of
// which the last tile may overlap the one before, and `rest` the others.
struct LineTiles {
  RegisterTile tile;
  RegisterTile rest;
  int64_t whole = 0;
  double cycles = std::numeric_limits<double>::infinity();
};

inline RegisterTile FindLineTile(int64_t pixels, int64_t vectors,
                                 bool of_pairs) {
  const auto r = static_cast<int>(pixels), v = static_cast<int>(vectors);
  return of_pairs ? FindPairTile(r, v) : FindRegisterTile(r, v, 4);
}

// Cycles of a tile of so many pixels and vectors of filters for sums of `steps`
// steps: multiplications, two at a time, or loads, or waiting for the sums of
// the steps before, and what it takes to begin and to end it. Fitted to a core
// with vectors of 512 bits; what counts is their ratio.
inline double CyclesOfLineTile(int64_t pixels, int64_t vectors, int64_t steps) {
  const auto sums = static_cast<double>(pixels * vectors);
  // Without a register for a value of a pixel, each multiplication loads it.
  constexpr int64_t kRegisters = 32;
  const bool is_full = (pixels + 1) * vectors >= kRegisters;
  const auto loads =
      static_cast<double>(vectors + (is_full ? pixels * vectors : pixels));
  const double waiting = sums >= 8 ? 0 : sums > 3 ? 2 : 1;
  const double step = std::max({sums / 2, waiting, loads / 2}) + 0.1 * loads;
  return 25 + 1.5 * sums + static_cast<double>(steps) * step;
}

// Those of at most so many pixels that compute a line of `length` soonest.
inline LineTiles FindTilesForLine(int64_t pixels, int64_t vectors,
                                  bool of_pairs, int64_t length,
                                  int64_t steps) {
  const auto find = [&](int64_t rows) {
    return FindLineTile(rows, vectors, of_pairs);
  };
  const auto time = [&](int64_t count, int64_t p) {
    return static_cast<double>((count + p - 1) / p) *
           CyclesOfLineTile(p, vectors, steps);
  };
  LineTiles best;
  const auto consider = [&](const LineTiles& tiles) {
    if (tiles.cycles < best.cycles) best = tiles;
  };
  for (int64_t p = std::min(pixels, length); p > 0; --p) {
    const RegisterTile tile = find(p);
    if (tile.segments == nullptr) continue;
    consider({tile, RegisterTile(), length, time(length, p)});
    const int64_t left = length % p, whole = length - left;
    for (int64_t r = left; r > 0; --r) {
      const RegisterTile rest = find(r);
      if (rest.segments == nullptr) continue;
      consider({tile, rest, whole, time(whole, p) + time(left, r)});
    }
  }
  return best;
}

// The same for all filters, of `filter_vectors` vectors. Tiles have at most
// `pixels` times `vectors` sums: as wide as that where lines are as long, more
// pixels of fewer filters, or of shorter lines more filters.
inline LineTiles FindTilesForFilters(int64_t pixels, int64_t vectors,
                                     bool of_pairs, int64_t length,
                                     int64_t filter_vectors, int64_t steps) {
  constexpr int64_t kMostPixels = 14, kMostVectors = 4;
  const int64_t least = std::min(vectors, filter_vectors);
  const int64_t most =
      length < pixels
          ? std::min(std::max(vectors, kMostVectors), filter_vectors)
          : least;
  LineTiles best;
  for (int64_t v = least; v <= most; ++v) {
    const int64_t rows = std::min(pixels * vectors / v, kMostPixels);
    LineTiles tiles = FindTilesForLine(rows, v, of_pairs, length, steps);
    if (tiles.tile.segments == nullptr) continue;
    const int64_t last = filter_vectors % v;
    tiles.cycles *= static_cast<double>(filter_vectors / v);
    if (last > 0) {
      // Its tiles have as many pixels as the others.
      tiles.cycles += static_cast<double>((tiles.whole + tiles.tile.rows - 1) /
                                          tiles.tile.rows) *
                      CyclesOfLineTile(tiles.tile.rows, last, steps);
      if (tiles.rest.rows > 0) {
        tiles.cycles +=
            static_cast<double>((length - tiles.whole + tiles.rest.rows - 1) /
                                tiles.rest.rows) *
            CyclesOfLineTile(tiles.rest.rows, last, steps);
      }
    }
    if (tiles.cycles < best.cycles) best = tiles;
  }
  return best;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_LINE_TILES_H_
