#include "ops/product/cpu/blocked_product.h"

#include <algorithm>
#include <utility>

#include "ops/product/cpu/block_walk.h"
#include "ops/product/cpu/pairs.h"

namespace optrail::ops {
namespace {

// One product: its three loops over blocks.
class Blocks {
 public:
  Blocks(const Blocking& blocking, const Tiles& tiles, const ProductSize& size,
         const Factor& a, const Factor& b, const Result& c, float* workspace)
      : blocking_(blocking),
        tiles_(tiles),
        size_(size),
        a_(a),
        b_(b),
        c_(c),
        layout_(blocking, size),
        a_space_(workspace + layout_.a),
        b_space_(workspace + layout_.b) {}

  // A block of columns stays while blocks of rows stream past it.
  void ColumnsOutermost() {
    for (int64_t j = 0; j < size_.n; j += blocking_.nc) {
      const int64_t columns = std::min(blocking_.nc, size_.n - j);
      for (int64_t p = 0; p < size_.k; p += blocking_.kc) {
        const int64_t steps = std::min(blocking_.kc, size_.k - p);
        const Panels b = BlockOfB(j, columns, p, steps);
        NextBlock next_b = NextOfB(j, columns, p);
        for (int64_t i = 0; i < size_.m; i += blocking_.mc) {
          const int64_t rows = std::min(blocking_.mc, size_.m - i);
          const Panels a = BlockOfA(i, rows, p, steps);
          NextBlock next_a = NextOfA(i, rows, p, columns);
          Multiply(i, j, p, {rows, columns, steps}, a, b, next_a, next_b);
        }
      }
    }
  }

  // The mirror image.
  void RowsOutermost() {
    NextBlock none;
    for (int64_t i = 0; i < size_.m; i += blocking_.mc) {
      const int64_t rows = std::min(blocking_.mc, size_.m - i);
      for (int64_t p = 0; p < size_.k; p += blocking_.kc) {
        const int64_t steps = std::min(blocking_.kc, size_.k - p);
        const Panels a = BlockOfA(i, rows, p, steps);
        for (int64_t j = 0; j < size_.n; j += blocking_.nc) {
          const int64_t columns = std::min(blocking_.nc, size_.n - j);
          const Panels b = BlockOfB(j, columns, p, steps);
          Multiply(i, j, p, {rows, columns, steps}, a, b, none, none);
        }
      }
    }
  }

 private:
  // B from a step and a column on, where it is stored.
  const float* StoredB(int64_t p, int64_t column) const {
    const auto& [data, stride] = b_.stored;
    if (blocking_.b_in_panels) {
      return data + column / tiles_.columns * stride + p * tiles_.columns;
    }
    return blocking_.b_transposed ? data + column * stride + p
                                  : data + p * stride + column;
  }

  Panels BlockOfA(int64_t row, int64_t rows, int64_t p, int64_t steps) {
    const auto& [data, stride] = a_.stored;
    const MatrixView block =
        a_.block != nullptr      ? (*a_.block)(row, rows, p, steps)
        : blocking_.a_transposed ? MatrixView{data + p * stride + row, stride}
                                 : MatrixView{data + row * stride + p, stride};
    return PackA(blocking_, tiles_, rows, steps, block, a_space_);
  }

  Panels BlockOfB(int64_t column, int64_t columns, int64_t p, int64_t steps) {
    const MatrixView block =
        b_.block != nullptr ? (*b_.block)(column, columns, p, steps)
                            : MatrixView{StoredB(p, column), b_.stored.stride};
    return PackB(blocking_, tiles_, columns, steps, block, b_space_);
  }

  // The block of A after this one, where it is copied line by line.
  NextBlock NextOfA(int64_t row, int64_t rows, int64_t p, int64_t columns) {
    if (!blocking_.a_transposed) return NextBlock();
    const auto& [data, stride] = a_.stored;
    const int64_t tile_count =
        CeilDiv(rows, tiles_.rows) * CeilDiv(columns, tiles_.columns);
    row += rows;
    if (row == size_.m) {
      row = 0;
      p += blocking_.kc;
    }
    if (p >= size_.k) return NextBlock();
    return NextBlock(data + p * stride + row, stride,
                     std::min(blocking_.kc, size_.k - p),
                     std::min(blocking_.mc, size_.m - row), tiles_.columns,
                     tiles_.columns, tile_count);
  }

  // The block of B after this one, where it is copied or stored in panels.
  NextBlock NextOfB(int64_t column, int64_t columns, int64_t p) {
    if (b_.block != nullptr ||
        !(blocking_.b_in_panels ||
          (blocking_.pack_b && !blocking_.b_transposed))) {
      return NextBlock();
    }
    const int64_t tile_count =
        CeilDiv(size_.m, tiles_.rows) * CeilDiv(columns, tiles_.columns);
    p += blocking_.kc;
    if (p >= size_.k) {
      p = 0;
      column += columns;
      columns = std::min(blocking_.nc, size_.n - column);
    }
    if (columns <= 0) return NextBlock();
    const bool in_panels = blocking_.b_in_panels;
    return NextBlock(
        StoredB(p, column), in_panels ? tiles_.columns : b_.stored.stride,
        std::min(blocking_.kc, size_.k - p), columns, tiles_.columns,
        in_panels ? b_.stored.stride : tiles_.columns, tile_count);
  }

  // The block of C at (row, column) += or = a * b. The last block of k applies
  // the epilogue and rounds.
  void Multiply(int64_t row, int64_t column, int64_t p,
                const ProductSize& block, const Panels& a, const Panels& b,
                NextBlock& next_a, NextBlock& next_b) {
    const bool last = p + block.k == size_.k;
    Result c;
    c.data = c_.data + row * c_.stride + column;
    c.stride = c_.stride;
    c.accumulate = c_.accumulate || p > 0;
    if (last) c.epilogue = c_.epilogue.From(column);
    uint16_t* const rounded =
        last && c_.rounded != nullptr
            ? c_.rounded + row * c_.rounded_stride + column
            : nullptr;
    if (RoundsInRegisters(blocking_.tile, c_.epilogue)) {
      c.rounded = rounded;
      c.rounded_stride = c_.rounded_stride;
    }
    BlockWalk(blocking_, tiles_, block, a, b, c, next_a, next_b).Run();
    if (rounded != nullptr && c.rounded == nullptr) {
      (blocking_.tile.of_pairs ? RoundPairSums : RoundToBf16)(
          c.data, block.m, block.n, c.stride, rounded, c_.rounded_stride);
    }
  }

  const Blocking& blocking_;
  const Tiles& tiles_;
  const ProductSize& size_;
  const Factor& a_;
  const Factor& b_;
  const Result& c_;
  const PackingSpace layout_;
  float* const a_space_;
  float* const b_space_;
};

}  // namespace

void BlockedProduct::Multiply(const ProductSize& size, const Factor& a,
                              const Factor& b, const Result& c,
                              float* workspace) const {
  const auto multiply = [&](const Tiles& tiles) {
    Blocks blocks(blocking_, tiles, size, a, b, c, workspace);
    if (blocking_.rows_outermost) {
      blocks.RowsOutermost();
    } else {
      blocks.ColumnsOutermost();
    }
  };
  if (tiles_.Serve(size)) {
    multiply(tiles_);
  } else {
    multiply(Tiles(blocking_.tile, size));
  }
}

}  // namespace optrail::ops
