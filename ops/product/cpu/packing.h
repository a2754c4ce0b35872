#ifndef OPTRAIL_OPS_PRODUCT_CPU_PACKING_H_
#define OPTRAIL_OPS_PRODUCT_CPU_PACKING_H_

// Packing: a block of A or B becomes panels, as the micro-kernel reads them, or
// stays where it is stored.
//
//   Panels a = PackA(blocking, tiles, rows, steps, block_of_a, space);
//   a.panel(i);  // rows [i * tile.rows, ...)
//
// A panel of A holds the rows of a tile, step by step; a panel of B the columns
// of one. Zeros fill up the last one.

#include <cstdint>

#include "ops/product/cpu/blocking.h"
#include "ops/product/cpu/tiles.h"

namespace optrail::ops {

// Parts of a workspace begin on a cache line.
inline int64_t WholeLines(int64_t floats) { return CeilDiv(floats, 16) * 16; }

// A matrix, or a block of one.
struct MatrixView {
  const float* data = nullptr;
  int64_t stride = 0;  // floats from one row to the next
};

// A whole B in panels, which stays packed between calls: all steps of a panel
// follow each other. A step of bfloat16 is a pair (pairs.h).
struct PackedB {
  int64_t columns = 0;  // of a panel: those of a tile
  int64_t steps = 0;    // of k

  int64_t panel_floats() const { return columns * steps; }
  int64_t floats(int64_t n) const {
    return CeilDiv(n, columns) * panel_floats();
  }
  // Packs B [steps, n], rows `ldb` floats apart.
  void Pack(int64_t n, const float* b, int64_t ldb, float* panels) const;
  // What is passed as B with Blocking::b_in_panels, from a column that begins a
  // panel: `stride` is the floats from one panel to the next.
  MatrixView From(const float* panels, int64_t column) const {
    return {panels + column / columns * panel_floats(), panel_floats()};
  }
};

// Panels below `packed_from` are read where they are stored.
struct Panels {
  const float* plain = nullptr;
  int64_t plain_step = 0;
  const float* packed = nullptr;
  int64_t packed_step = 0;
  int64_t packed_from = 0;
  // Of those that are not packed, from one row of a matrix to the next, and
  // whether the rows are the columns of A.
  int64_t plain_stride = 0;
  bool by_columns = false;

  bool is_packed(int64_t i) const { return i >= packed_from; }
  // From one whole panel to the next: all of them are packed, or none.
  int64_t step() const { return is_packed(0) ? packed_step : plain_step; }
  const float* panel(int64_t i) const {
    return is_packed(i) ? packed + (i - packed_from) * packed_step
                        : plain + i * plain_step;
  }
};

// `rows` and `k` steps of A, `columns` and `k` steps of B; `space` is where
// PackingSpace says.
Panels PackA(const Blocking& blocking, const Tiles& tiles, int64_t rows,
             int64_t k, const MatrixView& a, float* space);
Panels PackB(const Blocking& blocking, const Tiles& tiles, int64_t columns,
             int64_t k, const MatrixView& b, float* space);

// Offsets of packed blocks in a workspace, in floats.
struct PackingSpace {
  PackingSpace(const Blocking& blocking, const ProductSize& size);

  int64_t a = 0;
  int64_t b = 0;
  int64_t size = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_PACKING_H_
