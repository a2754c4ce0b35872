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
  const auto finish = [&](int column, float* sums) {
    float pair[2] = {};
    if (column < n) ToFloats(*(const Elements<2>*)(bias + column), pair);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums[j] = Activate<ACTIVATION>(sums[j] + pair[j % 2]);
    }
  };
  Product(&map_y, m, n, (k + kBk - 1) / kBk, walk, partial, arrived, load,
          finish);
}
