#ifndef OPTRAIL_OPS_PRODUCT_CPU_TILES_H_
#define OPTRAIL_OPS_PRODUCT_CPU_TILES_H_

// The remainder: which register tiles a product takes. Whole tiles, and smaller
// ones for the last rows and columns, so that little is computed in vain.
//
//   const Tiles tiles(tile, size);
//   tiles.For(/*whole_rows=*/true, /*whole_columns=*/false);

#include <cstdint>

#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocking.h"
#include "ops/product/cpu/micro_kernel.h"

namespace optrail::ops {

class Tiles {
 public:
  Tiles() = default;
  Tiles(const RegisterTile& whole, const ProductSize& size)
      : rows(whole.rows),
        columns(whole.columns),
        last_rows_(size.m % rows),
        last_columns_(size.n % columns) {
    const int vectors = columns / TileLanes();
    const int fewer_rows = SmallestRows(whole, last_rows_);
    const int fewer_vectors =
        last_columns_ == 0
            ? vectors
            : static_cast<int>(CeilDiv(last_columns_, TileLanes()));
    // A tile of fewer vectors is compiled wherever a wider one is.
    const auto find = [&](int tile_rows, int tile_vectors) {
      return tile_rows == rows && tile_vectors == vectors
                 ? whole
                 : FindTileLike(whole, tile_rows, tile_vectors);
    };
    tile_[0][0] = whole;
    tile_[0][1] = find(rows, fewer_vectors);
    tile_[1][0] = find(fewer_rows, vectors);
    tile_[1][1] = find(fewer_rows, fewer_vectors);
  }

  const RegisterTile& For(bool whole_rows, bool whole_columns) const {
    return tile_[whole_rows ? 0 : 1][whole_columns ? 0 : 1];
  }

  // Returns whether a product of another size has this remainder, or none.
  bool Serve(const ProductSize& size) const {
    const int64_t last_rows = size.m % rows, last_columns = size.n % columns;
    return (last_rows == 0 || last_rows == last_rows_) &&
           (last_columns == 0 || last_columns == last_columns_);
  }

  int rows = 0;  // of whole tiles
  int columns = 0;

 private:
  // The fewest rows of a compiled tile that hold `rows`.
  static int SmallestRows(const RegisterTile& tile, int64_t rows) {
    if (rows == 0) return tile.rows;
    const int vectors = tile.columns / TileLanes();
    for (int r = static_cast<int>(rows); r < tile.rows; ++r) {
      if (FindTileLike(tile, r, vectors).plain_a != nullptr) return r;
    }
    return tile.rows;
  }

  int64_t last_rows_ = 0;
  int64_t last_columns_ = 0;
  RegisterTile tile_[2][2];  // [fewer rows][fewer columns]
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_TILES_H_
