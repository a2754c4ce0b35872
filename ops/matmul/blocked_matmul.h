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

#include <cstdint>
#include <limits>

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
  // those rows to the next. A has no segments then, and is turned if it is
  // copied; blocks of B are, always: pack_b says nothing.
  bool a_transposed = false;
  bool b_transposed = false;

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
};

// Whether Blocking::prefetch_c pays for a C of so many floats in all.
inline bool PrefetchPays(int64_t floats_of_c, int64_t k) {
  constexpr int64_t kNearFloats = (2 << 20) / sizeof(float);
  return k > 128 || floats_of_c > kNearFloats;
}

// Floats that MultiplyBlocked needs; the address must be aligned to 64 bytes.
int64_t WorkspaceFloats(const Blocking& blocking, const MatmulSize& size);

// `lda`, `ldb`, `ldc`: floats from one row to the next.
void MultiplyBlocked(const Blocking& blocking, const MatmulSize& size,
                     const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, float* workspace);

// Rows of A in segments of `length` values (register_tile.h), `step` floats
// from the beginning of one to that of the next.
struct Segments {
  int64_t length = std::numeric_limits<int64_t>::max();
  int64_t step = 0;
};
// `accumulate`: C += A * B. `epilogue` begins with the first of the columns and
// ends every tile right after its last step of k, while it is in L1.
void MultiplyBlocked(const Blocking& blocking, const MatmulSize& size,
                     const float* a, int64_t lda, const Segments& a_segments,
                     const float* b, int64_t ldb, float* c, int64_t ldc,
                     float* workspace, bool accumulate = false,
                     const Epilogue& epilogue = Epilogue());

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_BLOCKED_MATMUL_H_
