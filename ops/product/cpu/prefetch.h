#ifndef OPTRAIL_OPS_PRODUCT_CPU_PREFETCH_H_
#define OPTRAIL_OPS_PRODUCT_CPU_PREFETCH_H_

// A block that is read or copied after the present one. While tiles are
// computed it is prefetched into L2, some rows of a panel with each tile: to
// wait for memory took 3% of a product of 384 rows.
//
//   next.PrefetchDuring(call);  // says so in the call to the micro-kernel
//   tile.plain_a(call, a, b, c);

#include <algorithm>
#include <cstdint>

#include "ops/product/cpu/micro_kernel.h"

namespace optrail::ops {

class NextBlock {
 public:
  NextBlock() = default;
  // `rows` times `columns`, in panels as wide as a tile of C, `panel_step`
  // floats apart, to be prefetched while `tiles` are computed.
  NextBlock(const float* data, int64_t stride, int64_t rows, int64_t columns,
            int64_t panel_columns, int64_t panel_step, int64_t tiles)
      : data_(data),
        stride_(stride),
        rows_(rows),
        panel_step_(panel_step),
        panels_(rows > 0 ? (columns + panel_columns - 1) / panel_columns : 0),
        rows_per_tile_((panels_ * rows + tiles - 1) / tiles) {}

  bool is_near() const { return panel_ == panels_; }

  // Leaves the call as many tiles as the remaining rows of a panel suffice for.
  void PrefetchDuring(TileCall& call) {
    call.next_rows = is_near() ? 0 : std::min(rows_per_tile_, rows_ - row_);
    if (call.next_rows == 0) return;
    call.tiles = std::min(call.tiles, (rows_ - row_) / call.next_rows);
    Take(call.next_rows * call.tiles, call);
  }

  // The call has so many tiles in any case.
  void PrefetchDuring(TileCall& call, int64_t tiles) {
    const int64_t left = rows_ - row_;
    call.next_rows =
        is_near() ? 0 : std::min(rows_per_tile_, (left + tiles - 1) / tiles);
    if (call.next_rows == 0) return;
    Take(std::min(left, call.next_rows * tiles), call);
  }

 private:
  void Take(int64_t rows, TileCall& call) {
    call.next = data_ + row_ * stride_ + panel_ * panel_step_;
    call.next_stride = stride_;
    row_ += rows;
    if (row_ < rows_) return;
    row_ = 0;
    ++panel_;
  }

  const float* data_ = nullptr;
  int64_t stride_ = 0;
  int64_t rows_ = 0;
  int64_t panel_step_ = 0;
  int64_t panels_ = 0;
  int64_t rows_per_tile_ = 0;
  int64_t panel_ = 0;  // where the next tile continues
  int64_t row_ = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_PREFETCH_H_
