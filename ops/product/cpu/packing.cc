#include "ops/product/cpu/packing.h"

#include <algorithm>

#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"

namespace optrail::ops {
namespace {

int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Blocks of A and B share no cache line.
constexpr int64_t kLineFloats = 16;

// Panels that can be read in place: all that a tile fits, unless all are
// packed. `whole_last`: the last one, too, whatever it lacks.
int64_t PlainPanels(bool pack, int64_t length, int64_t panel_length,
                    int64_t last_length, bool whole_last) {
  if (pack) return 0;
  if (whole_last) return CeilDiv(length, panel_length);
  const int64_t left = length % panel_length;
  return length / panel_length + (left != 0 && left == last_length ? 1 : 0);
}

// Copies rows of a block, `stride` apart, into panels of `width` columns from
// the first one that `panels` has packed. What the last one lacks of
// `last_width` becomes 0.
void CopyIntoPanels(const Panels& panels, const MatrixView& from, int64_t rows,
                    int64_t columns, int64_t width, int64_t last_width,
                    float* to) {
  const int64_t whole = columns / width;
  const int64_t last = columns - whole * width;
  if (panels.packed_from * width >= columns) return;
  const float* const first = from.data + panels.packed_from * width;
  const int64_t count = std::max<int64_t>(whole - panels.packed_from, 0);
  CopyPanels(first, rows, count, width, from.stride, to, width,
             panels.packed_step);
  if (last == 0) return;
  to += count * panels.packed_step;
  if (last < last_width) std::fill_n(to, rows * last_width, 0.0f);
  CopyPanels(first + count * width, rows, 1, last, from.stride, to, last_width,
             0);
}

// From one packed panel of A to the next, and from one transposed row to the
// next, is a line more than a power of two, lest they share sets of the cache.
int64_t StepOfPanels(int64_t rows, int64_t k) {
  return RoundUp(rows * k, kLineFloats) + kLineFloats;
}
int64_t TransposedRow(int64_t k) { return StepOfPanels(1, k); }

// A transposed A becomes plain rows: panels would take longer. The last tile
// reads `last_rows`, of which some may not exist.
MatrixView TransposeA(const Tiles& tiles, int64_t last_rows, int64_t rows,
                      int64_t k, const MatrixView& a, float* space) {
  const int64_t stride = TransposedRow(k);
  for (int64_t p = 0; p < k; p += kLineFloats) {  // a line of each row
    TransposeInto(a.data + p * a.stride, std::min(kLineFloats, k - p), rows,
                  a.stride, space + p, stride);
  }
  const int64_t last = rows % tiles.rows;
  if (last != 0) {
    std::fill_n(space + rows * stride, (last_rows - last) * stride, 0.0f);
  }
  return {space, stride};
}

// A transposed B, a panel at a time.
void TransposeB(const Tiles& tiles, int64_t last_width, int64_t columns,
                int64_t k, const MatrixView& b, int64_t step, float* space) {
  const int64_t lanes = TileLanes();
  for (int64_t j = 0; j < columns; j += tiles.columns, space += step) {
    const int64_t count = std::min<int64_t>(tiles.columns, columns - j);
    const int64_t width = count == tiles.columns ? count : last_width;
    for (int64_t row = 0; row < count; row += lanes) {
      TransposeInto(b.data + (j + row) * b.stride, std::min(lanes, count - row),
                    k, b.stride, space + row, width, /*pad=*/true);
    }
  }
}

}  // namespace

void PackedB::Pack(int64_t n, const float* b, int64_t ldb,
                   float* panels) const {
  Panels all;
  all.packed_step = panel_floats();
  CopyIntoPanels(all, {b, ldb}, steps, n, columns, columns, panels);
}

Panels PackA(const Blocking& blocking, const Tiles& tiles, int64_t rows,
             int64_t k, const MatrixView& a, float* space) {
  const int64_t last_rows = tiles.For(false, true).rows;
  const bool transposes = blocking.a_transposed && blocking.pack_a;
  const MatrixView from =
      transposes ? TransposeA(tiles, last_rows, rows, k, a, space) : a;
  Panels panels;
  panels.by_columns = blocking.a_transposed && !transposes;
  panels.plain = from.data;
  panels.plain_stride = from.stride;
  panels.plain_step = panels.by_columns ? tiles.rows : tiles.rows * from.stride;
  panels.packed = space;
  panels.packed_step = StepOfPanels(tiles.rows, k);
  panels.packed_from = PlainPanels(blocking.pack_a && !transposes, rows,
                                   tiles.rows, last_rows, transposes);
  if (panels.by_columns) {
    CopyIntoPanels(panels, from, k, rows, tiles.rows, last_rows, space);
    return panels;
  }
  for (int64_t row = panels.packed_from * tiles.rows; row < rows;
       row += tiles.rows, space += panels.packed_step) {
    const int64_t count = std::min<int64_t>(tiles.rows, rows - row);
    const int64_t width = count == tiles.rows ? count : last_rows;
    if (count < width) std::fill_n(space, width * k, 0.0f);
    TransposeInto(from.data + row * from.stride, count, k, from.stride, space,
                  width);
  }
  return panels;
}

Panels PackB(const Blocking& blocking, const Tiles& tiles, int64_t columns,
             int64_t k, const MatrixView& b, float* space) {
  Panels panels;
  panels.plain = b.data;
  if (blocking.b_in_panels) {
    panels.plain_stride = tiles.columns;
    panels.plain_step = b.stride;
    panels.packed_from = CeilDiv(columns, tiles.columns);
    return panels;
  }
  const RegisterTile& last_tile = tiles.For(true, false);
  panels.plain_stride = b.stride;
  panels.plain_step = tiles.columns;
  panels.packed = space;
  panels.packed_step = tiles.columns * k;
  panels.packed_from = PlainPanels(blocking.pack_b || blocking.b_transposed,
                                   columns, tiles.columns, last_tile.columns,
                                   last_tile.plain_a_edge != nullptr);
  if (blocking.b_transposed) {
    TransposeB(tiles, last_tile.columns, columns, k, b, panels.packed_step,
               space);
  } else {
    CopyIntoPanels(panels, b, k, columns, tiles.columns, last_tile.columns,
                   space);
  }
  return panels;
}

PackingSpace::PackingSpace(const Blocking& blocking, const ProductSize& size) {
  const RegisterTile& tile = blocking.tile;
  const int64_t kc = std::min(blocking.kc, size.k);
  // Without packing, room for the one ragged panel.
  const int64_t row_panels =
      blocking.pack_a ? CeilDiv(std::min(blocking.mc, size.m), tile.rows) : 1;
  const int64_t columns =
      blocking.b_in_panels ? 0
      : blocking.pack_b || blocking.b_transposed
          ? RoundUp(std::min(blocking.nc, size.n), tile.columns)
          : tile.columns;
  b = a + row_panels * (blocking.a_transposed ? tile.rows * TransposedRow(kc)
                                              : StepOfPanels(tile.rows, kc));
  this->size = b + RoundUp(columns * kc, kLineFloats);
}

}  // namespace optrail::ops
