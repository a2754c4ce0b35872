// c[i] = a[i] * b[i] on Hopper: product_hopper.cuh over the rows of all products,
// each padded to whole tiles; what is padded reads as zero and is not written.
//
// Compiled at run time with product_hopper.cuh's macros.

#include "product_hopper.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    batched_matmul(const __grid_constant__ TensorMap map_a,
                   const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, int batch, int m,
                   int n, int k, Walk walk, float* partial, int* arrived) {
  const int padded = (m + kBm - 1) / kBm * kBm;
  const auto load = [&](uint32_t to, uint32_t barrier, const Work& work,
                        int step) {
    const int i = work.m0 / padded, row = work.m0 % padded, depth = step * kBk;
    if (TRANSPOSED_X) {
#pragma unroll
      for (int chunk = 0; chunk < CONSUMERS; ++chunk) {
        LoadTile(to + chunk * kBk * 128, &map_a, barrier, row + chunk * 64,
                 depth, i);
      }
    } else {
      LoadTile(to, &map_a, barrier, depth, row, i);
    }
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const uint32_t to_b = to + kBytesX + chunk * kBk * 128;
      const int column = work.n0 + chunk * 64;
      LoadTile(to_b, &map_b, barrier, TRANSPOSED_W ? depth : column,
               TRANSPOSED_W ? column : depth, i);
    }
  };
  const auto store = [&](uint32_t box, int column, int row) {
    StoreTile(&map_c, box, column, row % padded, row / padded);
  };
  Product(store, batch * padded, n, (k + kBk - 1) / kBk, walk, partial, arrived,
          load, [](int column, float* sums) {});
}
