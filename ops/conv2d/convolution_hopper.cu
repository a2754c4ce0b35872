// The convolutions on Hopper as products whose left factor is never built: for
// every place of the filter and 64 channels the copy engine gathers those
// channels of consecutive output pixels (its "im2col" mode), with zeros for
// what lies outside. product_hopper.cuh does the rest.
//
// Compiled at run time with product_hopper.cuh's and convolution.cuh's macros.

#include "convolution.cuh"
#include "product_hopper.cuh"

constexpr int kPieces = (C + kBk - 1) / kBk;  // of 64 channels

// The pixels from (n, h, w) on, which is where the filter begins, moved by
// (across, down) within the filter.
__device__ __forceinline__ void LoadPixels(uint32_t to, const TensorMap* map,
                                           uint32_t barrier, int channel,
                                           const Pixel& pixel, int down,
                                           int across) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
      "complete_"
      "tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
      "l"(map), "r"(barrier), "r"(channel), "r"(pixel.w), "r"(pixel.h),
      "r"(pixel.image), "h"((uint16_t)across), "h"((uint16_t)down)
      : "memory");
}

#if FUSED
// Has the line of 128 bytes brought near.
__device__ __forceinline__ void Prefetch(const float* at) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}
__device__ __forceinline__ void LoadPair(const float* at, float (&pair)[2]) {
  asm("ld.global.nc.v2.f32 {%0, %1}, [%2];"
      : "=f"(pair[0]), "=f"(pair[1])
      : "l"(at));
}
#endif

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    convolution(const __grid_constant__ TensorMap map_x,
                const __grid_constant__ TensorMap map_weights,
                const __grid_constant__ TensorMap map_y, const float* scale,
                const float* shift, int m, Walk walk, float* partial,
                int* arrived) {
  const auto load = [&](uint32_t to, uint32_t barrier, const Work& work,
                        int step) {
    const int tap = step / kPieces, channel = step % kPieces * kBk;
    LoadPixels(to, &map_x, barrier, channel, Pixel(work.m0), tap / S, tap % S);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      LoadTile(to + kBytesX + chunk * kBk * 128, &map_weights, barrier,
               work.n0 + chunk * 64, channel, tap);
    }
  };
#if FUSED
  // Not only when the first sums are ready.
  for (int k = (int)threadIdx.x * 32; k < K; k += kThreads * 32) {
    Prefetch(scale + k);
    Prefetch(shift + k);
  }
#endif
  const auto finish = [&](int column, float* sums) {
#if FUSED
    // Without a branch, so that the loads of 64 columns are in flight together.
    const int at = min(column, K - 2);
    float a[2], b[2];
    LoadPair(scale + at, a);
    LoadPair(shift + at, b);
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[j] = Finish(sums[j], a[j % 2], b[j % 2]);
#endif
  };
  Product(&map_y, m, K, R * S * kPieces, walk, partial, arrived, load, finish);
}
