#ifndef OPTRAIL_OPS_PRODUCT_CPU_BLOCKING_H_
#define OPTRAIL_OPS_PRODUCT_CPU_BLOCKING_H_

// How a product C[m, n] = A[m, k] * B[k, n] is cut for the caches and which of
// its blocks are copied: what tuning chooses.
//
//   Blocking blocking;
//   blocking.tile = FindRegisterTile(6, 4, /*k_unroll=*/4);
//   blocking.mc = 96;
//
// Every m, n, k >= 1 works with every blocking.

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/product/cpu/micro_kernel.h"

namespace optrail::ops {

struct ProductSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

struct Blocking {
  RegisterTile tile;

  // A cache block: rows of A, columns of B, and the steps of k of both.
  int64_t mc = 0;
  int64_t nc = 0;
  int64_t kc = 0;

  // Copy the block into consecutive micro-panels (contiguous, few pages).
  // Otherwise only a ragged last panel is copied and padded with zeros; of B
  // only where tiles have no edge (micro_kernel.h).
  bool pack_a = true;
  bool pack_b = true;

  // A is stored as [k, m], B as [n, k]. A is transposed if it is copied; blocks
  // of B always are: pack_b has no effect.
  bool a_transposed = false;
  bool b_transposed = false;

  // B is stored in panels (PackedB) and read there.
  bool b_in_panels = false;

  // Which block stays while the other streams past it. False: columns, then k,
  // then rows, so that a block of B is packed once and A once per block of
  // columns. True: the mirror image.
  bool rows_outermost = false;

  // Which micro-panel stays in L1 within a block. False: that of B, while those
  // of A stream from L2. True: that of A.
  bool a_panel_stays = false;

  // While a tile is computed, prefetch the rows of A of the next one: hardware
  // does not where they are apart and beyond the caches.
  bool prefetch_a = false;

  // While a tile is computed, prefetch its place in C row by row. Where C is
  // beyond L2, all buffers wait for a tile that is stored, and loads of B have
  // none (2% of 3136 x 256 x 64). For a C in the caches, sums of 64 steps lose
  // 1%.
  bool prefetch_c = true;

  // How many steps of k ahead rows of B are prefetched; 0 for none.
  int64_t prefetch = 0;

  // Tiles of a skinny A read a panel of B from several places at a time: for
  // panels in memory, which nothing prefetches then.
  bool in_streams = false;

  // Sets in_streams and kc for `rows` times a B that stays packed between
  // calls: a skinny A is bound by reading B, and by nothing else with one or
  // two rows, so that each panel is read in one go.
  void ReadInStreams(int64_t rows, int64_t k) {
    constexpr int64_t kFew = 32, kVeryFew = 4;
    in_streams = rows <= kFew;
    if (rows <= kVeryFew) kc = k;
  }
};

// Returns whether Blocking::prefetch_c pays for a C of so many floats in all,
// on a core with an L2 of so many bytes, of which A and B take the other half.
inline bool PrefetchPays(int64_t floats_of_c, int64_t k, int64_t l2_bytes) {
  return k > 128 ||
         floats_of_c * static_cast<int64_t>(sizeof(float)) > l2_bytes / 2;
}

// Returns whether sums of `k` steps are so short, and a C of so many floats in
// all so large, that storing C takes longest: rows of it had better be stored
// in one piece, with a panel of A that stays.
inline bool StoringIsMost(int64_t floats_of_c, int64_t k, int64_t l2_bytes) {
  return k <= 16 &&
         floats_of_c * static_cast<int64_t>(sizeof(float)) > l2_bytes;
}

// The blocking that the knobs of linear, batched_matmul and the convolutions
// describe, for sums of `depth` steps. InvalidArgument if this machine has no
// such tile.
template <class Knobs>
absl::StatusOr<Blocking> BlockingOf(const Knobs& knobs, int64_t depth) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(static_cast<int>(knobs.mr),
                                   static_cast<int>(knobs.nr_vectors),
                                   /*k_unroll=*/4);
  if (blocking.tile.plain_a == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a register tile of mr=", knobs.mr, " by nr_vectors=", knobs.nr_vectors,
        " does not fit into the vector registers of this machine"));
  }
  blocking.mc = knobs.m_tiles * blocking.tile.rows;
  blocking.nc = knobs.n_tiles * blocking.tile.columns;
  blocking.kc = knobs.kc;
  blocking.pack_a = knobs.pack_a;
  // The panel of A had better stay unless all of that of B fits into L1.
  constexpr int64_t kMostOfL1 = (32 << 10) / sizeof(float);
  const bool b_stays =
      std::min(blocking.kc, depth) * blocking.tile.columns <= kMostOfL1;
  blocking.a_panel_stays = !b_stays;
  blocking.prefetch_a = !knobs.pack_a && b_stays;
  return blocking;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_BLOCKING_H_
