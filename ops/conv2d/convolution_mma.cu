// The convolutions on tensor cores from sm_80 on, any shape: products whose
// left factor is gathered from x. mma_product.cuh does the rest.
//
// Compiled at run time with mma_product.cuh's and convolution.cuh's macros.

#include "convolution.cuh"
#include "mma_product.cuh"
#include "predecessors.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    convolution_mma(const uint16_t* x, const uint16_t* weights,
                    const float* scale, const float* shift, uint16_t* y, int m,
                    int group) {
  AwaitPredecessors();
  constexpr int kDepth = R * S * C;
  Product(
      x, weights, y, m, K, kDepth, group,
      [&](int row, int depth) -> const uint16_t* {
        if (row >= m || depth >= kDepth) return nullptr;
        const Pixel pixel(row);
        const int tap = depth / C;
        const int h = pixel.h + tap / S, w = pixel.w + tap % S;
        if (h < 0 || h >= H || w < 0 || w >= W) return nullptr;
        return x + (((long long)pixel.image * H + h) * W + w) * C + depth % C;
      },
      [&](int depth, int k) {
        return depth < kDepth && k < K ? weights + depth * K + k : nullptr;
      },
      [&](int k, float sum) { return Finish(sum, scale, shift, k); });
}
