#ifndef OPTRAIL_OPS_PRODUCT_CUDA_MATRICES_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_MATRICES_CUH_

// Sources and results of hopper_product.cuh that are dense row-major matrices,
// or batches of them.
//
// Rows of a batch's products are padded to whole tiles; what is padded reads as
// zero and is not written. Compiled with, beside hopper_product.cuh's macros:
//   BATCHED 0|1  several products
//   FLAT 0|1     the matrices of all products are one matrix for the engine,
//                which it reads faster than matrices of three dimensions: there
//                is one product, or tiles end where its matrices do

#include "unaligned_steps.cuh"

#if !BATCHED && !FLAT
#error "a single product is flat"
#endif

// The sizes of a product, and how many rows it has when padded to whole tiles.
struct Sizes {
  int m, n, k, padded;
  __device__ Sizes(int m, int n, int k)
      : m(m), n(n), k(k), padded(BATCHED ? (m + kBm - 1) / kBm * kBm : m) {}
};

// One place in a batch: the product, and the row in it.
struct BatchRow {
  int product, row;
  __device__ BatchRow(const Sizes& sizes, int row)
      : product(BATCHED ? row / sizes.padded : 0),
        row(BATCHED ? row - product * sizes.padded : row) {}
};

__device__ __forceinline__ void LoadMatrix(uint32_t to, const TensorMap* map,
                                           uint32_t barrier, int x, int y,
                                           int product, int rows) {
  if constexpr (FLAT) {
    LoadTile(to, map, barrier, x, BATCHED ? product * rows + y : y);
  } else {
    LoadTile(to, map, barrier, x, y, product);
  }
}

// Loads tiles of a and b by the engine where their rows are aligned.
class MatrixTile {
 public:
  __device__ MatrixTile(const Block& block, const TensorMap* a,
                        const TensorMap* b, const Sizes& sizes,
                        const Tile& tile)
      : block_(block),
        a_(a),
        b_(b),
        sizes_(sizes),
        at_(sizes, tile.m0),
        n0_(tile.n0) {}

  __device__ __forceinline__ void Load(const Slot& slot, int step) const {
    if constexpr (!kUnalignedA) LoadA(slot, step * kBk);
    if constexpr (!kUnalignedB) LoadB(slot, step * kBk);
  }

 private:
  __device__ __forceinline__ void LoadA(const Slot& slot, int depth) const {
    if constexpr (TRANSPOSED_A) {
#pragma unroll
      for (int slab = 0; slab < kBm / 64; ++slab)
        LoadMatrix(slot.a + slab * kBk * 128, a_, slot.barrier,
                   at_.row + slab * 64, depth, at_.product, sizes_.k);
    } else if constexpr (CLUSTER_N == 1) {
      LoadMatrix(slot.a, a_, slot.barrier, depth, at_.row, at_.product,
                 sizes_.m);
    } else {
      static_assert(CLUSTER_N == 1 || !BATCHED);
      uint16_t mask = 0;
      for (int j = 0; j < CLUSTER_N; ++j)
        mask |= 1 << (block_.rank_m + j * CLUSTER_M);
      const int rows = kBm / CLUSTER_N;
      LoadTileMulticast(slot.a + block_.rank_n * rows * 128, a_, slot.barrier,
                        depth, at_.row + block_.rank_n * rows, mask);
    }
  }

  // Blocks of a cluster load whole slabs of 64 columns for each other, or some
  // rows of every slab where the slabs do not go round.
  __device__ __forceinline__ void LoadB(const Slot& slot, int depth) const {
    constexpr bool kSlabs = kChunks % CLUSTER_M == 0;
    constexpr int kDepth = kBk / (kSlabs ? 1 : CLUSTER_M);
    uint16_t mask = 0;
    for (int i = 0; i < CLUSTER_M; ++i)
      mask |= 1 << (i + block_.rank_n * CLUSTER_M);
    const int row = kSlabs ? 0 : block_.rank_m * kDepth;
#pragma unroll
    for (int first = 0; first < kChunks; first += kSlabs ? CLUSTER_M : 1) {
      const int chunk = first + (kSlabs ? block_.rank_m : 0);
      const uint32_t to = slot.b + chunk * kBk * 128 + row * 128;
      const int column = n0_ + chunk * 64;
      if constexpr (CLUSTER_M > 1) {
        LoadTileMulticast(to, b_, slot.barrier, column, depth + row, mask);
      } else {
        LoadMatrix(to, b_, slot.barrier, TRANSPOSED_B ? depth : column,
                   TRANSPOSED_B ? column : depth, at_.product,
                   TRANSPOSED_B ? sizes_.n : sizes_.k);
      }
    }
  }
  static_assert(CLUSTER_M == 1 || (!BATCHED && !TRANSPOSED_B));

  const Block& block_;
  const TensorMap *a_, *b_;
  const Sizes& sizes_;
  BatchRow at_;
  int n0_;
};

#if UNALIGNED_LOADS
// The same where rows of a or of b are no multiples of 16 bytes: all threads of
// the producer load those (unaligned_steps.cuh).
struct UnalignedMatrixTile {
  MatrixTile engine;
  UnalignedMatrix a, b;
  int row_a, row_b, n0, k;

  __device__ __forceinline__ UnalignedMatrix B(int) const { return b; }
  __device__ __forceinline__ int RowOfB(int step) const {
    return row_b + step * kBk;
  }

  __device__ UnalignedMatrixTile(const Block& block, const TensorMap* map_a,
                                 const TensorMap* map_b,
                                 const uint16_t* matrix_a,
                                 const uint16_t* matrix_b, const Sizes& sizes,
                                 const Tile& tile)
      : engine(block, map_a, map_b, sizes, tile), n0(tile.n0), k(sizes.k) {
    const BatchRow at(sizes, tile.m0);
    // Rows of the next product read as zero.
    a = {matrix_a, (at.product + 1) * sizes.m, sizes.k};
    b = {matrix_b, (at.product + 1) * sizes.k, sizes.n};
    row_a = at.product * sizes.m + at.row;
    row_b = at.product * sizes.k;
  }
};
#endif

// The source of a kernel: where the tiles of a and b are loaded from.
struct Matrices {
  const TensorMap *map_a, *map_b;
  const uint16_t *a, *b;
  const Sizes& sizes;

#if UNALIGNED_LOADS
  __device__ UnalignedMatrixTile At(const Block& block,
                                    const Tile& tile) const {
    return UnalignedMatrixTile(block, map_a, map_b, a, b, sizes, tile);
  }
#else
  __device__ MatrixTile At(const Block& block, const Tile& tile) const {
    return MatrixTile(block, map_a, map_b, sizes, tile);
  }
#endif
};

// The result of a kernel: where c is written to.
struct ResultMatrix {
  const TensorMap* map;
  uint16_t* c;
  const Sizes& sizes;

  __device__ __forceinline__ void Store(uint32_t box, int row,
                                        int column) const {
    if constexpr (FLAT) {
      StoreTile(map, box, column, row);
    } else {
      const BatchRow at(sizes, row);
      StoreTile(map, box, column, at.row, at.product);
    }
  }

#if UNALIGNED
  // 16 rows of a box from `row0` on, by a warp.
  __device__ __forceinline__ void StoreRows(uint32_t box, int row0, int row,
                                            int column) const {
    const BatchRow at(sizes, row);
    StoreUnaligned(box, row0, c, (at.product + 1) * sizes.m, sizes.n,
                   at.product * sizes.m + at.row, column);
  }
#endif
};

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_MATRICES_CUH_
