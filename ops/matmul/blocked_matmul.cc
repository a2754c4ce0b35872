#include "ops/matmul/blocked_matmul.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace optrail::ops {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Of a call.
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

// One cache line: workspaces of different parts share none.
constexpr int64_t kLineFloats = 16;

// The tiles of a product: whole ones, and smaller ones for what is left of rows
// and columns, so that little is computed for nothing.
struct Tiles {
  Tiles(const Blocking& blocking, const MatmulSize& size)
      : rows(blocking.tile.rows), columns(blocking.tile.columns) {
    const int vectors = columns / TileLanes();
    const int last_rows = SmallestRows(blocking.tile, size.m % rows);
    const int last_vectors =
        size.n % columns == 0
            ? vectors
            : static_cast<int>(CeilDiv(size.n % columns, TileLanes()));
    // A tile of fewer vectors is instantiated wherever a wider one is.
    const auto find = [&](int tile_rows, int tile_vectors) {
      return tile_rows == rows && tile_vectors == vectors
                 ? blocking.tile
                 : FindTileLike(blocking.tile, tile_rows, tile_vectors);
    };
    tile[0][0] = blocking.tile;
    tile[0][1] = find(rows, last_vectors);
    tile[1][0] = find(last_rows, vectors);
    tile[1][1] = find(last_rows, last_vectors);
  }

  const RegisterTile& For(bool whole_rows, bool whole_columns) const {
    return tile[whole_rows ? 0 : 1][whole_columns ? 0 : 1];
  }

  int rows;
  int columns;
  RegisterTile tile[2][2];  // [fewer rows][fewer columns]

 private:
  // The fewest rows of an instantiated tile that hold `rows`.
  static int SmallestRows(const RegisterTile& tile, int64_t rows) {
    if (rows == 0) return tile.rows;
    const int vectors = tile.columns / TileLanes();
    for (int r = static_cast<int>(rows); r < tile.rows; ++r) {
      if (FindTileLike(tile, r, vectors).plain_a != nullptr) {
        return r;
      }
    }
    return tile.rows;
  }
};

// A block of A or B as the micro-kernel reads it: `panel(i)` starts micro-panel
// i. Panels below `packed_from` are read in place.
struct PanelSource {
  const float* plain = nullptr;
  int64_t plain_step = 0;
  const float* packed = nullptr;
  int64_t packed_step = 0;
  int64_t packed_from = 0;

  bool is_packed(int64_t i) const { return i >= packed_from; }
  // From one whole panel to the next: all of them are packed, or none.
  int64_t step() const { return is_packed(0) ? packed_step : plain_step; }
  const float* panel(int64_t i) const {
    return is_packed(i) ? packed + (i - packed_from) * packed_step
                        : plain + i * plain_step;
  }
};

// Panels that can be read in place: all that a tile fits, unless all are
// packed. `whole_last`: the last one, too, whatever it lacks.
int64_t PlainPanels(bool pack, int64_t length, int64_t panel_length,
                    int64_t last_length, bool whole_last) {
  if (pack) return 0;
  if (whole_last) return CeilDiv(length, panel_length);
  const int64_t left = length % panel_length;
  return length / panel_length + (left != 0 && left == last_length ? 1 : 0);
}

// A as it lies from some row and step of k on.
struct LeftFactor {
  const float* data = nullptr;
  int64_t stride = 0;
  bool by_columns = false;  // register_tile.h
};

// Copies rows of a block, `stride` apart, into panels of `width` columns from
// the first one that `source` has packed. What the last one lacks of
// `last_width` becomes 0.
void CopyIntoPanels(const PanelSource& source, const float* from,
                    int64_t stride, int64_t rows, int64_t columns,
                    int64_t width, int64_t last_width, float* to) {
  const int64_t whole = columns / width;
  const int64_t last = columns - whole * width;
  if (source.packed_from * width >= columns) return;
  from += source.packed_from * width;
  const int64_t panels = std::max<int64_t>(whole - source.packed_from, 0);
  CopyPanels(from, rows, panels, width, stride, to, width, source.packed_step);
  if (last == 0) return;
  to += panels * source.packed_step;
  if (last < last_width) std::fill_n(to, rows * last_width, 0.0f);
  CopyPanels(from + panels * width, rows, 1, last, stride, to, last_width, 0);
}

// From one packed panel of A to the next, and from one turned row to the next,
// is a line more than a power of two, lest they share sets of the cache.
int64_t StepOfPanels(int64_t rows, int64_t k) {
  return RoundUp(rows * k, kLineFloats) + kLineFloats;
}
int64_t TurnedRow(int64_t k) { return StepOfPanels(1, k); }

// `a` becomes what is read of it where it is not packed. What lies transposed
// is turned into plain rows if it is to be copied: panels would take longer.
PanelSource BlockOfA(const Blocking& blocking, const Tiles& tiles, int64_t rows,
                     int64_t k, float* workspace, LeftFactor& a) {
  const int64_t last_rows = tiles.For(false, true).rows;
  const bool turns = blocking.a_transposed && blocking.pack_a;
  if (turns) {
    const int64_t stride = TurnedRow(k);
    for (int64_t p = 0; p < k; p += kLineFloats) {  // a line of each row
      TransposeInto(a.data + p * a.stride, std::min(kLineFloats, k - p), rows,
                    a.stride, workspace + p, stride);
    }
    // The last tile reads rows that are not there.
    const int64_t last = rows % tiles.rows;
    if (last != 0) {
      std::fill_n(workspace + rows * stride, (last_rows - last) * stride, 0.0f);
    }
    a.data = workspace;
    a.stride = stride;
    a.by_columns = false;
  }
  PanelSource source;
  source.plain = a.data;
  source.plain_step = a.by_columns ? tiles.rows : tiles.rows * a.stride;
  source.packed = workspace;
  source.packed_step = StepOfPanels(tiles.rows, k);
  source.packed_from = PlainPanels(blocking.pack_a && !turns, rows, tiles.rows,
                                   last_rows, turns);
  if (a.by_columns) {
    CopyIntoPanels(source, a.data, a.stride, k, rows, tiles.rows, last_rows,
                   workspace);
    return source;
  }
  for (int64_t row = source.packed_from * tiles.rows; row < rows;
       row += tiles.rows, workspace += source.packed_step) {
    const int64_t count = std::min<int64_t>(tiles.rows, rows - row);
    const int64_t width = count == tiles.rows ? count : last_rows;
    if (count < width) std::fill_n(workspace, width * k, 0.0f);
    TransposeInto(a.data + row * a.stride, count, k, a.stride, workspace,
                  width);
  }
  return source;
}

// What lies transposed is turned a panel at a time.
PanelSource BlockOfB(const Blocking& blocking, const Tiles& tiles,
                     int64_t columns, int64_t k, const float* b, int64_t ldb,
                     float* workspace) {
  if (blocking.b_in_panels) {
    PanelSource source;
    source.plain = b;
    source.plain_step = ldb;
    source.packed_from = CeilDiv(columns, tiles.columns);
    return source;
  }
  const RegisterTile& last_tile = tiles.For(true, false);
  const int64_t last_width = last_tile.columns;
  PanelSource source;
  source.plain = b;
  source.plain_step = tiles.columns;
  source.packed = workspace;
  source.packed_step = tiles.columns * k;
  source.packed_from = PlainPanels(blocking.pack_b || blocking.b_transposed,
                                   columns, tiles.columns, last_tile.columns,
                                   last_tile.plain_a_edge != nullptr);
  if (!blocking.b_transposed) {
    CopyIntoPanels(source, b, ldb, k, columns, tiles.columns, last_width,
                   workspace);
    return source;
  }
  for (int64_t j = 0; j < columns;
       j += tiles.columns, workspace += source.packed_step) {
    const int64_t count = std::min<int64_t>(tiles.columns, columns - j);
    const int64_t width = count == tiles.columns ? count : last_width;
    const int64_t lanes = TileLanes();
    for (int64_t row = 0; row < count; row += lanes) {
      TransposeInto(b + (j + row) * ldb, std::min(lanes, count - row), k, ldb,
                    workspace + row, width, /*pad=*/true);
    }
  }
  return source;
}

// C block += or = A block * B block, both within the caches.
void MultiplyBlock(const Blocking& blocking, const Tiles& tiles,
                   const MatmulSize& block, const PanelSource& a,
                   const LeftFactor& plain_a, const PanelSource& b, int64_t ldb,
                   bool accumulate, const Epilogue& epilogue, float* c,
                   int64_t ldc, const RoundedSums& rounded, NextBlock& next_a,
                   NextBlock& next_b) {
  const int64_t row_panels = CeilDiv(block.m, tiles.rows);
  const int64_t column_panels = CeilDiv(block.n, tiles.columns);
  const int64_t whole_rows = block.m / tiles.rows;
  const int64_t whole_columns = block.n / tiles.columns;
  const bool finishes = !EndsInRegisters(epilogue);
  const int64_t most_tiles = finishes && !blocking.a_panel_stays
                                 ? MostTilesToFinish(tiles.rows, ldc)
                                 : kMostTiles;

  TileCall call;
  call.k = block.k;
  call.ldc = ldc;
  call.accumulate = accumulate;
  call.relu = !finishes && epilogue.activation == Activation::kRelu;
  call.prefetch_c = blocking.prefetch_c;
  call.prefetch = blocking.prefetch;
  call.in_streams = blocking.in_streams;
  call.ld_rounded = rounded.stride;

  // Multiplies panel i of A with panel j of B, for which `call` says the rest,
  // and as many of the next as it has tiles.
  const auto multiply_panels = [&](TileCall& call, TileFunction multiply,
                                   int64_t i, int64_t j) {
    call.a = a.panel(i);
    call.b = b.panel(j);
    call.c = c + i * tiles.rows * ldc + j * tiles.columns;
    // While the first tile of these rows is computed, or every one.
    call.next_a = blocking.prefetch_a && i + 1 < row_panels &&
                          !a.is_packed(i + 1) &&
                          (j == 0 || !blocking.a_panel_stays)
                      ? a.panel(i + 1)
                      : nullptr;
    (next_a.is_near() ? next_b : next_a).PrefetchDuring(call);
    const Epilogue ending = epilogue.From(j * tiles.columns);
    call.scale = finishes ? nullptr : ending.scale;
    call.shift = finishes ? nullptr : ending.shift;
    if (rounded.data != nullptr) {
      call.rounded =
          rounded.data + i * tiles.rows * rounded.stride + j * tiles.columns;
    }
    multiply(call);
    if (finishes) {
      const bool down = call.a_step != 0;
      ScaleShiftActivate(ending, call.c,
                         down ? call.rows * call.tiles : call.rows,
                         down ? call.columns : call.columns * call.tiles, ldc);
    }
    return call.tiles;
  };

  // What whole tiles have in common is said once: a tile of 64 steps takes
  // 770 cycles, and to say all of it anew 40 more.
  TileCall whole = call;
  whole.lda = a.is_packed(0) ? tiles.rows : plain_a.stride;
  whole.ldb = b.is_packed(0) || blocking.b_in_panels ? tiles.columns : ldb;
  whole.rows = tiles.rows;
  whole.columns = tiles.columns;
  if (blocking.a_panel_stays) {
    whole.b_step = b.step();
    whole.c_step = tiles.columns;
    whole.rounded_step = tiles.columns;
  } else {
    whole.a_step = a.step();
    whole.c_step = tiles.rows * ldc;
    whole.rounded_step = tiles.rows * rounded.stride;
  }
  const TileFunction multiply_whole = a.is_packed(0) || plain_a.by_columns
                                          ? blocking.tile.columns_of_a
                                          : blocking.tile.plain_a;

  // `along`: how many whole tiles there are in the direction of the loop.
  // Returns how many were computed.
  const auto multiply_tiles = [&](int64_t i, int64_t j, int64_t along) {
    if (i < whole_rows && j < whole_columns) {
      whole.tiles = std::min(along, most_tiles);
      return multiply_panels(whole, multiply_whole, i, j);
    }
    call.rows = std::min<int64_t>(tiles.rows, block.m - i * tiles.rows);
    call.columns =
        std::min<int64_t>(tiles.columns, block.n - j * tiles.columns);
    const RegisterTile& tile = tiles.For(i < whole_rows, j < whole_columns);
    call.lda = a.is_packed(i) ? tile.rows : plain_a.stride;
    call.ldb = b.is_packed(j)         ? tile.columns
               : blocking.b_in_panels ? tiles.columns
                                      : ldb;
    const bool edge =
        call.columns < tile.columns && !b.is_packed(j) && !blocking.b_in_panels;
    return multiply_panels(
        call,
        a.is_packed(i) || plain_a.by_columns
            ? (edge ? tile.columns_of_a_edge : tile.columns_of_a)
            : (edge ? tile.plain_a_edge : tile.plain_a),
        i, j);
  };

  if (blocking.a_panel_stays) {
    for (int64_t i = 0; i < row_panels; ++i) {
      for (int64_t j = 0; j < column_panels;) {
        j += multiply_tiles(i, j, whole_columns - j);
      }
    }
  } else {
    for (int64_t j = 0; j < column_panels; ++j) {
      for (int64_t i = 0; i < row_panels;) {
        i += multiply_tiles(i, j, whole_rows - i);
      }
    }
  }
}

// Where the parts of the workspace lie, in floats.
struct WorkspaceLayout {
  int64_t a = 0;
  int64_t b = 0;
  int64_t size = 0;
};

WorkspaceLayout LayOut(const Blocking& blocking, const MatmulSize& size) {
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
  WorkspaceLayout layout;
  layout.b = layout.a + row_panels * (blocking.a_transposed
                                          ? tile.rows * TurnedRow(kc)
                                          : StepOfPanels(tile.rows, kc));
  layout.size = layout.b + RoundUp(columns * kc, kLineFloats);
  return layout;
}

}  // namespace

int64_t WorkspaceFloats(const Blocking& blocking, const MatmulSize& size) {
  return LayOut(blocking, size).size;
}

void PackRightFactor(int64_t columns, int64_t n, int64_t k, const float* b,
                     int64_t ldb, float* panels) {
  PanelSource source;
  source.packed_step = PanelFloats(columns, k);
  CopyIntoPanels(source, b, ldb, k, n, columns, columns, panels);
}

void MultiplyBlocked(const Blocking& blocking, const MatmulSize& size,
                     const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, float* workspace, bool accumulate,
                     const Epilogue& epilogue, const RoundedSums& rounded) {
  const WorkspaceLayout layout = LayOut(blocking, size);
  float* const a_space = workspace + layout.a;
  float* const b_space = workspace + layout.b;
  const Tiles tiles(blocking, size);
  // The loops are written once: `outer` runs over the dimension whose block
  // stays, `inner` over the one whose blocks stream past it.
  const bool rows_outer = blocking.rows_outermost;
  const int64_t outer_size = rows_outer ? size.m : size.n;
  const int64_t outer_block = rows_outer ? blocking.mc : blocking.nc;
  const int64_t inner_size = rows_outer ? size.n : size.m;
  const int64_t inner_block = rows_outer ? blocking.nc : blocking.mc;

  const auto left_factor = [&](int64_t row, int64_t p) {
    return blocking.a_transposed ? LeftFactor{a + p * lda + row, lda, true}
                                 : LeftFactor{a + row * lda + p, lda, false};
  };
  const auto right = [&](int64_t p, int64_t column) {
    if (blocking.b_in_panels) {
      return b + column / tiles.columns * ldb + p * tiles.columns;
    }
    return blocking.b_transposed ? b + column * ldb + p : b + p * ldb + column;
  };

  // Of A, after the block of `rows` at (row, p), and of B, after that of
  // `columns` at (p, column), where they are copied or lie transposed; blocks
  // of columns, then of k, then of rows.
  const auto next_left = [&](int64_t p, int64_t row, int64_t rows,
                             int64_t columns) {
    const int64_t tile_count =
        CeilDiv(rows, tiles.rows) * CeilDiv(columns, tiles.columns);
    row += rows;
    if (row == size.m) {
      row = 0;
      p += blocking.kc;
    }
    if (p >= size.k) return NextBlock();
    return NextBlock(a + p * lda + row, lda, std::min(blocking.kc, size.k - p),
                     std::min(blocking.mc, size.m - row), tiles.columns,
                     tiles.columns, tile_count);
  };
  const auto next_right = [&](int64_t p, int64_t column, int64_t columns) {
    const int64_t tile_count =
        CeilDiv(size.m, tiles.rows) * CeilDiv(columns, tiles.columns);
    p += blocking.kc;
    if (p >= size.k) {
      p = 0;
      column += columns;
      columns = std::min(blocking.nc, size.n - column);
    }
    if (columns <= 0) return NextBlock();
    return NextBlock(right(p, column),
                     blocking.b_in_panels ? tiles.columns : ldb,
                     std::min(blocking.kc, size.k - p), columns, tiles.columns,
                     blocking.b_in_panels ? ldb : tiles.columns, tile_count);
  };

  for (int64_t outer = 0; outer < outer_size; outer += outer_block) {
    const int64_t outer_length = std::min(outer_block, outer_size - outer);
    for (int64_t p = 0; p < size.k; p += blocking.kc) {
      const int64_t k = std::min(blocking.kc, size.k - p);
      PanelSource a_block, b_block;
      NextBlock next_a, next_b;
      LeftFactor left = left_factor(rows_outer ? outer : 0, p);
      if (rows_outer) {
        a_block = BlockOfA(blocking, tiles, outer_length, k, a_space, left);
      } else {
        b_block = BlockOfB(blocking, tiles, outer_length, k, right(p, outer),
                           ldb, b_space);
        if (blocking.b_in_panels ||
            (blocking.pack_b && !blocking.b_transposed)) {
          next_b = next_right(p, outer, outer_length);
        }
      }
      for (int64_t inner = 0; inner < inner_size; inner += inner_block) {
        const int64_t inner_length = std::min(inner_block, inner_size - inner);
        int64_t row = inner;
        int64_t column = outer;
        MatmulSize block{inner_length, outer_length, k};
        if (rows_outer) {
          std::swap(row, column);
          std::swap(block.m, block.n);
          b_block = BlockOfB(blocking, tiles, block.n, k, right(p, column), ldb,
                             b_space);
        } else {
          left = left_factor(row, p);
          a_block = BlockOfA(blocking, tiles, block.m, k, a_space, left);
          if (blocking.a_transposed) {
            next_a = next_left(p, row, block.m, block.n);
          }
        }
        const bool last = p + k == size.k;
        RoundedSums to;
        if (last && rounded.data != nullptr) {
          to = {rounded.data + row * rounded.stride + column, rounded.stride};
        }
        MultiplyBlock(blocking, tiles, block, a_block, left, b_block, ldb,
                      accumulate || p > 0,
                      last ? epilogue.From(column) : Epilogue(),
                      c + row * ldc + column, ldc, to, next_a, next_b);
      }
    }
  }
}

}  // namespace optrail::ops
