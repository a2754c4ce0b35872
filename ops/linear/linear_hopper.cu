// y[m, n] = f(x[m, k] * w[k, n] + bias[n]) on Hopper: product_hopper.cuh, with
// the bias and the activation before results are rounded.
//
// Compiled at run time with product_hopper.cuh's and elements.cuh's macros and
//   ACTIVATION 0 none, 1 relu, 2 gelu.

#include "elements.cuh"
#include "functions.cuh"
#include "product_hopper.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    linear(const __grid_constant__ TensorMap map_x,
           const __grid_constant__ TensorMap map_w,
           const __grid_constant__ TensorMap map_y, const Element* bias, int m,
           int n, int k, Walk walk, float* partial, int* arrived) {
  const auto load = [&](uint32_t to, uint32_t barrier, const Work& work,
                        int step) {
    LoadTile(to, &map_x, barrier, step * kBk, work.m0);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      LoadTile(to + kBytesX + chunk * kBk * 128, &map_w, barrier,
               work.n0 + chunk * 64, step * kBk);
    }
  };
  // Not only when the first sums are ready: a line of 128 bytes a thread.
  for (int i = (int)threadIdx.x * 64; i < n; i += kThreads * 64) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(bias + i));
  }
  const auto finish = [&](int column, float* sums) {
    // Without a branch, so that the loads of 64 columns are in flight together.
    float pair[2];
    const uint32_t both = __ldg((const uint32_t*)(bias + min(column, n - 2)));
    ToFloats((const Elements<2>&)both, pair);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums[j] = Activate<ACTIVATION>(sums[j] + pair[j % 2]);
    }
  };
  Product(&map_y, m, n, (k + kBk - 1) / kBk, walk, partial, arrived, load,
          finish);
}
