#include "ops/matmul/blocked_matmul.h"

#include <algorithm>
#include <cstring>

namespace optrail::ops {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// One cache line: workspaces of different parts share none.
constexpr int64_t kLineFloats = 16;

// A block of A or B as the micro-kernel reads it: `panel(i)` starts micro-panel
// i. Panels below `packed_from` are read in place.
struct PanelSource {
  const float* plain = nullptr;
  int64_t plain_step = 0;
  const float* packed = nullptr;
  int64_t packed_step = 0;
  int64_t packed_from = 0;

  bool is_packed(int64_t i) const { return i >= packed_from; }
  const float* panel(int64_t i) const {
    return is_packed(i) ? packed + (i - packed_from) * packed_step
                        : plain + i * plain_step;
  }
};

// Panels that can be read in place: all whole ones, unless all are packed.
int64_t PlainPanels(bool pack, int64_t length, int64_t panel_length) {
  return pack ? 0 : length / panel_length;
}

// Copies `rows` <= tile.rows rows of A into one micro-panel (register_tile.h).
void PackPanelA(const RegisterTile& tile, int64_t rows, int64_t k,
                const float* a, int64_t lda, float* to) {
  const int64_t unroll = tile.k_unroll;
  const int64_t whole = k / unroll * unroll;
  for (int64_t i = 0; i < tile.rows; ++i) {
    float* out = to + i * unroll;
    if (i >= rows) {
      for (int64_t p = 0; p < k; p += unroll, out += tile.rows * unroll) {
        std::fill_n(out, unroll, 0.0f);
      }
      continue;
    }
    const float* in = a + i * lda;
    int64_t p = 0;
    if (unroll == 4) {  // a copy of constant size is one instruction
      for (; p < whole; p += 4, out += tile.rows * 4) {
        std::memcpy(out, in + p, 4 * sizeof(float));
      }
    } else {
      for (; p < whole; p += unroll, out += tile.rows * unroll) {
        std::copy_n(in + p, unroll, out);
      }
    }
    std::copy_n(in + p, k - p, out);
  }
}

// Copies `columns` <= tile.columns columns of B into one micro-panel, row by
// row.
void PackPanelB(const RegisterTile& tile, int64_t columns, int64_t k,
                const float* b, int64_t ldb, float* to) {
  for (int64_t p = 0; p < k; ++p, b += ldb, to += tile.columns) {
    std::memcpy(to, b, columns * sizeof(float));
    std::fill(to + columns, to + tile.columns, 0.0f);
  }
}

PanelSource BlockOfA(const Blocking& blocking, int64_t rows, int64_t k,
                     const float* a, int64_t lda, float* workspace) {
  const RegisterTile& tile = blocking.tile;
  PanelSource source;
  source.plain = a;
  source.plain_step = tile.rows * lda;
  source.packed = workspace;
  source.packed_step = tile.rows * RoundUp(k, tile.k_unroll);
  source.packed_from = PlainPanels(blocking.pack_a, rows, tile.rows);
  for (int64_t row = source.packed_from * tile.rows; row < rows;
       row += tile.rows, workspace += source.packed_step) {
    PackPanelA(tile, std::min<int64_t>(tile.rows, rows - row), k, a + row * lda,
               lda, workspace);
  }
  return source;
}

PanelSource BlockOfB(const Blocking& blocking, int64_t columns, int64_t k,
                     const float* b, int64_t ldb, float* workspace) {
  const RegisterTile& tile = blocking.tile;
  PanelSource source;
  source.plain = b;
  source.plain_step = tile.columns;
  source.packed = workspace;
  source.packed_step = tile.columns * k;
  source.packed_from = PlainPanels(blocking.pack_b, columns, tile.columns);
  for (int64_t column = source.packed_from * tile.columns; column < columns;
       column += tile.columns, workspace += source.packed_step) {
    PackPanelB(tile, std::min<int64_t>(tile.columns, columns - column), k,
               b + column, ldb, workspace);
  }
  return source;
}

// A tile that hangs over the edge of C is computed beside it; its valid part is
// copied.
void CopyTile(const float* from, int64_t from_stride, int64_t rows,
              int64_t columns, bool accumulate, float* c, int64_t ldc) {
  for (int64_t i = 0; i < rows; ++i, from += from_stride, c += ldc) {
    if (accumulate) {
      for (int64_t j = 0; j < columns; ++j) c[j] += from[j];
    } else {
      std::copy_n(from, columns, c);
    }
  }
}

// C block += or = A block * B block, both within the caches.
void MultiplyBlock(const Blocking& blocking, const MatmulSize& block,
                   const PanelSource& a, int64_t lda, const PanelSource& b,
                   int64_t ldb, bool accumulate, float* c, int64_t ldc,
                   float* edge_tile) {
  const RegisterTile& tile = blocking.tile;
  const int64_t row_panels = CeilDiv(block.m, tile.rows);
  const int64_t column_panels = CeilDiv(block.n, tile.columns);

  auto multiply_tile = [&](int64_t i, int64_t j) {
    const int64_t rows = std::min<int64_t>(tile.rows, block.m - i * tile.rows);
    const int64_t columns =
        std::min<int64_t>(tile.columns, block.n - j * tile.columns);
    const bool whole = rows == tile.rows && columns == tile.columns;
    float* c_tile = c + i * tile.rows * ldc + j * tile.columns;

    TileCall call;
    call.k = block.k;
    call.a = a.panel(i);
    call.lda = lda;
    call.b = b.panel(j);
    call.ldb = b.is_packed(j) ? tile.columns : ldb;
    call.c = whole ? c_tile : edge_tile;
    call.ldc = whole ? ldc : tile.columns;
    call.accumulate = whole && accumulate;
    call.prefetch = blocking.prefetch;
    (a.is_packed(i) ? tile.packed_a : tile.plain_a)(call);
    if (!whole) {
      CopyTile(edge_tile, tile.columns, rows, columns, accumulate, c_tile, ldc);
    }
  };

  if (blocking.a_panel_stays) {
    for (int64_t i = 0; i < row_panels; ++i) {
      for (int64_t j = 0; j < column_panels; ++j) multiply_tile(i, j);
    }
  } else {
    for (int64_t j = 0; j < column_panels; ++j) {
      for (int64_t i = 0; i < row_panels; ++i) multiply_tile(i, j);
    }
  }
}

// Where the parts of the workspace lie, in floats.
struct WorkspaceLayout {
  int64_t a = 0;
  int64_t b = 0;
  int64_t edge_tile = 0;
  int64_t size = 0;
};

WorkspaceLayout LayOut(const Blocking& blocking, const MatmulSize& size) {
  const RegisterTile& tile = blocking.tile;
  const int64_t kc = RoundUp(std::min(blocking.kc, size.k), tile.k_unroll);
  // Without packing, room for the one ragged panel.
  const int64_t rows = blocking.pack_a
                           ? RoundUp(std::min(blocking.mc, size.m), tile.rows)
                           : tile.rows;
  const int64_t columns =
      blocking.pack_b ? RoundUp(std::min(blocking.nc, size.n), tile.columns)
                      : tile.columns;
  WorkspaceLayout layout;
  layout.b = layout.a + RoundUp(rows * kc, kLineFloats);
  layout.edge_tile = layout.b + RoundUp(columns * kc, kLineFloats);
  layout.size =
      layout.edge_tile + RoundUp(tile.rows * tile.columns, kLineFloats);
  return layout;
}

}  // namespace

int64_t WorkspaceFloats(const Blocking& blocking, const MatmulSize& size) {
  return LayOut(blocking, size).size;
}

void MultiplyBlocked(const Blocking& blocking, const MatmulSize& size,
                     const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, float* workspace) {
  const WorkspaceLayout layout = LayOut(blocking, size);
  float* const a_space = workspace + layout.a;
  float* const b_space = workspace + layout.b;
  float* const edge_tile = workspace + layout.edge_tile;

  // The loops are written once: `outer` runs over the dimension whose block
  // stays, `inner` over the one whose blocks stream past it.
  const bool rows_outer = blocking.rows_outermost;
  const int64_t outer_size = rows_outer ? size.m : size.n;
  const int64_t outer_block = rows_outer ? blocking.mc : blocking.nc;
  const int64_t inner_size = rows_outer ? size.n : size.m;
  const int64_t inner_block = rows_outer ? blocking.nc : blocking.mc;

  for (int64_t outer = 0; outer < outer_size; outer += outer_block) {
    const int64_t outer_length = std::min(outer_block, outer_size - outer);
    for (int64_t p = 0; p < size.k; p += blocking.kc) {
      const int64_t k = std::min(blocking.kc, size.k - p);
      PanelSource a_block, b_block;
      if (rows_outer) {
        a_block = BlockOfA(blocking, outer_length, k, a + outer * lda + p, lda,
                           a_space);
      } else {
        b_block = BlockOfB(blocking, outer_length, k, b + p * ldb + outer, ldb,
                           b_space);
      }
      for (int64_t inner = 0; inner < inner_size; inner += inner_block) {
        const int64_t inner_length = std::min(inner_block, inner_size - inner);
        int64_t row = inner;
        int64_t column = outer;
        MatmulSize block{inner_length, outer_length, k};
        if (rows_outer) {
          std::swap(row, column);
          std::swap(block.m, block.n);
          b_block = BlockOfB(blocking, block.n, k, b + p * ldb + column, ldb,
                             b_space);
        } else {
          a_block =
              BlockOfA(blocking, block.m, k, a + row * lda + p, lda, a_space);
        }
        MultiplyBlock(blocking, block, a_block, lda, b_block, ldb,
                      /*accumulate=*/p > 0, c + row * ldc + column, ldc,
                      edge_tile);
      }
    }
  }
}

}  // namespace optrail::ops
