#ifndef OPTRAIL_OPS_PRODUCT_CPU_BLOCK_WALK_H_
#define OPTRAIL_OPS_PRODUCT_CPU_BLOCK_WALK_H_

// The two inner loops: every panel of a block of A meets every panel of a block
// of B, and the epilogue ends the sums of the last steps.
//
//   BlockWalk(blocking, tiles, size, a, b, c, next_a, next_b).Run();

#include <cstdint>

#include "ops/product/cpu/blocked_product.h"
#include "ops/product/cpu/packing.h"
#include "ops/product/cpu/prefetch.h"

namespace optrail::ops {

class BlockWalk {
 public:
  // All but `c` must outlive the walk. `c` is that of the block; its epilogue
  // is that of whole sums or none.
  BlockWalk(const Blocking& blocking, const Tiles& tiles,
            const ProductSize& size, const Panels& a, const Panels& b,
            const Result& c, NextBlock& next_a, NextBlock& next_b);

  void Run();

 private:
  int64_t MultiplyTiles(int64_t i, int64_t j, int64_t along);
  int64_t MultiplyPanels(TileCall& call, TileFunction multiply, int64_t i,
                         int64_t j);

  const Blocking& blocking_;
  const Tiles& tiles_;
  const ProductSize size_;
  const Panels& a_;
  const Panels& b_;
  const Result c_;
  NextBlock& next_a_;
  NextBlock& next_b_;

  // True if a pass over C ends the sums.
  const bool finishes_;
  const int64_t row_panels_;
  const int64_t whole_rows_;
  const int64_t whole_columns_;
  // A's panel, not B's; where it is the only one, a call computes many tiles.
  const bool a_stays_;
  int64_t most_tiles_;  // of a call
  // What is common to calls is written once: a tile of 64 steps takes 770
  // cycles, and to write all of it again 40 more.
  TileCall whole_;
  TileFunction multiply_whole_;
  TileCall ragged_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_BLOCK_WALK_H_
