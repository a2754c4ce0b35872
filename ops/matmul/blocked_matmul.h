#ifndef OPTRAIL_OPS_MATMUL_BLOCKED_MATMUL_H_
#define OPTRAIL_OPS_MATMUL_BLOCKED_MATMUL_H_

// C = A * B in single precision on one thread, by the scheme of Goto and van de
// Geijn ("Anatomy of high-performance matrix multiplication", 2008) as BLIS
// lays it out (Van Zee and van de Geijn, "BLIS: a framework for rapidly
// instantiating BLAS functionality", 2015): three loops cut the matrices into
// blocks for the caches, two walk over the register tiles inside a block, and
// one micro-kernel (register_tile.h) computes a tile.
//
//   Blocking blocking = ...;
//   std::vector<float> workspace(WorkspaceFloats(blocking, {m, n, k}));
//   MultiplyBlocked(blocking, {m, n, k}, a, k, b, n, c, n, workspace.data());
//
// Every m, n, k >= 1 works with every blocking. It is not a BLAS: no alpha and
// beta.

#include <algorithm>
#include <cstdint>

#include "ops/lib/blocks.h"
#include "ops/matmul/register_tile.h"

namespace optrail::ops {

struct MatmulSize {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

struct Blocking {
  RegisterTile tile;

  // Cache block: rows of A, columns of B, and the steps of k that both share.
  int64_t mc = 0;
  int64_t nc = 0;
  int64_t kc = 0;

  // Copies the block into consecutive micro-panels (contiguous, few pages).
  // Without it only a ragged last panel is copied, padded with zeros; of B
  // where tiles have no edge (register_tile.h).
  bool pack_a = true;
  bool pack_b = true;

  // A lies as [k, m], B as [n, k], `lda` and `ldb` being the floats from one of
  // those rows to the next. A is turned if it is copied; blocks of B are,
  // always: pack_b says nothing.
  bool a_transposed = false;
  bool b_transposed = false;

  // B lies in the panels of PackRightFactor: `ldb` is the floats from one to
  // the next, and columns begin with a panel. It is read there.
  bool b_in_panels = false;

  // Which block stays while the other streams past it. False: columns, then k,
  // then rows, so that a block of B is packed once and A once per block of
  // columns. True: the mirror image.
  bool rows_outermost = false;

  // Which micro-panel stays in L1 within a block. False: that of B, while those
  // of A stream from L2. True: that of A.
  bool a_panel_stays = false;

  // While a tile is computed, the rows of A of the next one are prefetched:
  // where they lie apart and beyond the caches, hardware does not.
  bool prefetch_a = false;

  // While a tile is computed, its place in C is prefetched row by row: where C
  // lies beyond L2, as it is stored all buffers wait for it and loads of B have
  // none (2% of 3136 x 256 x 64). Where C is near, sums of 64 steps lose 1%.
  bool prefetch_c = true;

  // How many steps of k ahead rows of B are prefetched; 0 for none.
  int64_t prefetch = 0;

  // Tiles of few rows read a panel of B from several places at a time: for
  // panels in memory, which nobody prefetches then.
  bool in_streams = false;
};

// For `rows` times panels that are kept from call to call: few are bound by
// reading them, of very few nothing else matters, and each is read in one go.
inline void ReadInStreams(int64_t rows, int64_t k, Blocking& blocking) {
  constexpr int64_t kFew = 32, kVeryFew = 4;
  blocking.in_streams = rows <= kFew;
  if (rows <= kVeryFew) blocking.kc = k;
}

// Whether Blocking::prefetch_c pays for a C of so many floats in all, on a core
// with an L2 of so many bytes, of which A and B take the other half.
inline bool PrefetchPays(int64_t floats_of_c, int64_t k, int64_t l2_bytes) {
  return k > 128 ||
         floats_of_c * static_cast<int64_t>(sizeof(float)) > l2_bytes / 2;
}

// A block that is read or copied after this one. While tiles are computed it is
// brought near, some rows of a panel with each: to wait for memory took 3% of a
// product of 384 rows.
class NextBlock {
 public:
  NextBlock() = default;
  // `rows` times `columns`, in panels as wide as a tile of C, `panel_step`
  // floats apart, to be brought while `tiles` are computed.
  NextBlock(const float* data, int64_t stride, int64_t rows, int64_t columns,
            int64_t panel_columns, int64_t panel_step, int64_t tiles)
      : data_(data),
        stride_(stride),
        rows_(rows),
        panel_step_(panel_step),
        panels_(rows > 0 ? (columns + panel_columns - 1) / panel_columns : 0),
        rows_per_tile_((panels_ * rows + tiles - 1) / tiles) {}

  bool is_near() const { return panel_ == panels_; }

  // Leaves the call as many tiles as the rows that are left in a panel are
  // enough for.
  void PrefetchDuring(TileCall& call) {
    call.next_rows = is_near() ? 0 : std::min(rows_per_tile_, rows_ - row_);
    if (call.next_rows == 0) return;
    call.tiles = std::min(call.tiles, (rows_ - row_) / call.next_rows);
    call.next = data_ + row_ * stride_ + panel_ * panel_step_;
    call.next_stride = stride_;
    row_ += call.next_rows * call.tiles;
    if (row_ < rows_) return;
    row_ = 0;
    ++panel_;
  }

 private:
  const float* data_ = nullptr;
  int64_t stride_ = 0;
  int64_t rows_ = 0;
  int64_t panel_step_ = 0;
  int64_t panels_ = 0;
  int64_t rows_per_tile_ = 0;
  int64_t panel_ = 0;  // where the next tile goes on
  int64_t row_ = 0;
};

// Floats that MultiplyBlocked needs; the address must be aligned to 64 bytes.
int64_t WorkspaceFloats(const Blocking& blocking, const MatmulSize& size);

// All of a right factor, kept in panels of so many columns, those of a tile,
// all steps of k of each; the last is filled up with zeros.
inline int64_t PanelFloats(int64_t columns, int64_t k) { return k * columns; }
inline int64_t RightFactorFloats(int64_t columns, int64_t n, int64_t k) {
  return (n + columns - 1) / columns * PanelFloats(columns, k);
}
void PackRightFactor(int64_t columns, int64_t n, int64_t k, const float* b,
                     int64_t ldb, float* panels);

// Where whole sums go, rounded to bfloat16, in place of C.
struct RoundedSums {
  uint16_t* data = nullptr;
  int64_t stride = 0;  // elements from one row to the next
};

// Whether tiles apply the epilogue while sums are in registers; gelu is a pass
// of its own over sums in C.
inline bool EndsInRegisters(const Epilogue& epilogue) {
  return epilogue.activation != Activation::kGelu;
}

// `lda`, `ldb`, `ldc`: floats from one row to the next. `accumulate`: C += A *
// B. `epilogue` begins with the first of the columns and ends every tile right
// after its last step of k, while it is in registers or L1. `rounded`: with
// pair tiles and what ends in registers; C then holds what there is before the
// last block of k, and nothing where that is the only one.
void MultiplyBlocked(const Blocking& blocking, const MatmulSize& size,
                     const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, float* workspace,
                     bool accumulate = false,
                     const Epilogue& epilogue = Epilogue(),
                     const RoundedSums& rounded = RoundedSums());

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_BLOCKED_MATMUL_H_
