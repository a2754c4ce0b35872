#ifndef OPTRAIL_OPS_PRODUCT_CUDA_PRODUCT_CUDA_H_
#define OPTRAIL_OPS_PRODUCT_CUDA_PRODUCT_CUDA_H_

// What the CUDA backends of products share on the host: how a config divides a
// product into tiles, what hopper_product.cuh and mma_product.cuh are compiled
// with, and how they are launched.
//
//   const HopperProduct product(size, config);
//   cuda::CudaPlan plan = product.Plan("gemm.cu", "gemm", hardware);
//   product.AddWalk(workspace, &arguments);
//
// The space of such a backend has the knobs kernel, tile_m, tile_n, stages,
// group and split_k, and may have cluster, cluster_m and cluster_n.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ops/device/cuda/backend.h"

namespace optrail::ops {

// c[i] = a[i] * b[i], `batch` products of m x k and k x n.
struct BatchedSize {
  int64_t batch = 1, m = 0, n = 0, k = 0;
};

// The hopper kernels of one config.
class HopperProduct {
 public:
  // The depth of a step.
  static constexpr int64_t kTileK = 64;

  // `unaligned`: rows that the copy engine cannot load, as the macro UNALIGNED.
  HopperProduct(const BatchedSize& size, const proto::Config& config,
                int unaligned = 0);

  // The plan of `function` in `source` but for the macros that the operator
  // adds.
  cuda::CudaPlan Plan(absl::string_view source, absl::string_view function,
                      const proto::Hardware& hardware) const;
  // Walk, partial sums, counters: the last arguments of a kernel.
  void AddWalk(void* workspace, cuda::CudaArguments* arguments) const;

  int64_t tile_m() const { return tile_m_; }
  // Rows of a, b and c in a box of the copy engine. Blocks of a cluster share
  // the slabs of 64 columns of b's tile, or its rows where the slabs do not go
  // round.
  uint32_t BoxRowsOfA() const {
    return static_cast<uint32_t>(tile_m_ / cluster_n_);
  }
  uint32_t BoxRowsOfB() const {
    const bool slabs = tile_n_ / 64 % cluster_m_ == 0;
    return static_cast<uint32_t>(kTileK / (slabs ? 1 : cluster_m_));
  }
  uint32_t BoxRowsOfC() const { return transposed_ ? 8 : 64; }

 private:
  int64_t cluster() const { return cluster_m_ * cluster_n_ * shares_; }
  // Warpgroups that multiply, and products of each.
  int64_t consumers() const { return side_ == 256 ? 2 : side_ / 64; }
  int64_t m_tiles() const { return side_ / 64 / consumers(); }
  int64_t columns() const { return transposed_ ? tile_m_ : tile_n_; }
  int64_t Tiles() const;
  int64_t CounterBytes() const;
  int64_t Blocks(const proto::Hardware& hardware) const;
  // Tiles of partial sums that `blocks` keep in memory.
  int64_t Places(int64_t blocks) const;

  BatchedSize size_;
  bool transposed_;
  int64_t tile_m_, tile_n_, stages_, group_, split_k_;
  int64_t cluster_m_, cluster_n_, shares_;
  int64_t side_;  // of a tile, of which each product has 64
  int unaligned_;
};

// Warpgroups that load, as the kernels compute it: two for unaligned rows where
// there are registers for two. `sums` are those of a consumer's thread.
int64_t HopperProducers(int unaligned, int64_t consumers, int64_t sums);

// Bytes that unaligned tiles of one step are fetched into: a word of 16 bytes
// more for each row.
int64_t FetchedBytes(int unaligned, int64_t tile_m, int64_t tile_n);

// The plan of an mma kernel. `vector_a` and `vector_b`: elements that lie
// together in a and b.
cuda::CudaPlan MmaProductPlan(absl::string_view source,
                              absl::string_view function,
                              const BatchedSize& size, int64_t vector_a,
                              int64_t vector_b, const proto::Config& config);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_PRODUCT_CUDA_H_
