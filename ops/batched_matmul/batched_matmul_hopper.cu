// c[i] = a[i] * b[i] on Hopper: product_hopper.cuh over the rows of all products,
// each padded to whole tiles; what is padded reads as zero and is not written.
//
// Compiled at run time with product_hopper.cuh's macros and
//   FLAT 0|1: the matrices of all products are one below the other, which the
//   copy engine reads faster than matrices of three dimensions: there is one
//   product, or tiles end where they do.

#include "product_hopper.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    batched_matmul(const __grid_constant__ TensorMap map_a,
                   const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, int batch, int m,
                   int n, int k, Walk walk, float* partial, int* arrived) {
  if (threadIdx.x == 0) {
    PrefetchMap(&map_a);
    PrefetchMap(&map_b);
    PrefetchMap(&map_c);
  }
  const int padded = (m + kBm - 1) / kBm * kBm;
  // Of matrix i, which has so many rows.
  const auto load_tile = [](uint32_t to, const TensorMap* map, uint32_t barrier,
                            int x, int y, int i, int rows) {
    if (FLAT) {
      LoadTile(to, map, barrier, x, i * rows + y);
    } else {
      LoadTile(to, map, barrier, x, y, i);
    }
  };
  const auto load = [&](uint32_t to, uint32_t barrier, const Work& work,
                        int step) {
    const int i = batch == 1 ? 0 : work.m0 / padded;
    const int row = work.m0 - i * padded, depth = step * kBk;
    if (TRANSPOSED_X) {
#pragma unroll
      for (int chunk = 0; chunk < CONSUMERS; ++chunk) {
        load_tile(to + chunk * kBk * 128, &map_a, barrier, row + chunk * 64,
                  depth, i, k);
      }
    } else {
      load_tile(to, &map_a, barrier, depth, row, i, m);
    }
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const uint32_t to_b = to + kBytesX + chunk * kBk * 128;
      const int column = work.n0 + chunk * 64;
      load_tile(to_b, &map_b, barrier, TRANSPOSED_W ? depth : column,
                TRANSPOSED_W ? column : depth, i, TRANSPOSED_W ? n : k);
    }
  };
  const auto store = [&](uint32_t box, int column, int row) {
    if (FLAT) {
      StoreTile(&map_c, box, column, row);
    } else {
      StoreTile(&map_c, box, column, row % padded, row / padded);
    }
  };
  Product(store, batch * padded, n, (k + kBk - 1) / kBk, walk, partial, arrived,
          load, [](int column, float* sums) {});
}
