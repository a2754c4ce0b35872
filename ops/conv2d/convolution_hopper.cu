// The convolutions on Hopper as products whose left factor is never built: for
// every place of the filter and 64 channels the copy engine gathers those
// channels of consecutive output pixels (its "im2col" mode), with zeros for
// what lies outside. hopper_product.cuh does the rest. Filters whose number is
// no multiple of 8 are rows that the engine cannot load: unaligned_steps.cuh
// does, and stores y. Or the engine loads rows that convolution_copy.cuh
// padded.
//
// Compiled at run time with hopper_product.cuh's, convolution.cuh's and
// convolution_copy.cuh's macros.

#include "convolution.cuh"
#include "predecessors.cuh"
#include "unaligned_steps.cuh"
// After the integers' names:
#include "convolution_copy.cuh"

// Places of the filter, and channels of a place.
constexpr int kAcross = LAYOUT == LINES ? 1 : S;
constexpr int kChannels = LAYOUT == LINES ? S * C : C;
constexpr int kPieces = (kChannels + kBk - 1) / kBk;  // of 64 channels

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

// The source: pixels of x by the engine, and the filter as matrices of
// channels.
struct ConvolutionTile {
  const TensorMap *x, *weights;
  Pixel pixel;
  int n0;

  __device__ __forceinline__ void Load(const Slot& slot, int step) const {
    const int tap = step / kPieces, channel = step % kPieces * kBk;
    LoadPixels(slot.a, x, slot.barrier, channel, pixel, tap / kAcross,
               tap % kAcross);
    if constexpr (!kUnalignedB) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        LoadTile(slot.b + chunk * kBk * 128, weights, slot.barrier,
                 n0 + chunk * 64, channel, tap);
      }
    }
  }
};
#if UNALIGNED_LOADS
struct UnalignedConvolutionTile {
  ConvolutionTile engine;
  const uint16_t* weights;
  int n0;
  // Not used: the engine loads x.
  UnalignedMatrix a = {};
  int row_a = 0, k = 0;

  // The filter as one matrix; channels of the next place read as zero.
  __device__ __forceinline__ UnalignedMatrix B(int step) const {
    return {weights, (step / kPieces + 1) * kChannels, K};
  }
  __device__ __forceinline__ int RowOfB(int step) const {
    return step / kPieces * kChannels + step % kPieces * kBk;
  }
};
typedef UnalignedConvolutionTile SourceTile;
#else
typedef ConvolutionTile SourceTile;
#endif

struct ConvolutionSource {
  const TensorMap *x, *map_weights;
  [[maybe_unused]] const uint16_t* weights;
  __device__ SourceTile At(const Block&, const Tile& tile) const {
    ConvolutionTile engine = {x, map_weights, Pixel(tile.m0), tile.n0};
    // A copied line has its own column.
    if (LAYOUT == LINES) engine.pixel.w = tile.m0 % Q;
#if UNALIGNED_LOADS
    return {engine, weights, tile.n0};
#else
    return engine;
#endif
  }
};

struct Pixels {
  const TensorMap* map;
  [[maybe_unused]] uint16_t* y;
  [[maybe_unused]] int m;
  __device__ __forceinline__ void Store(uint32_t box, int row,
                                        int column) const {
    StoreTile(map, box, column, row);
  }
#if UNALIGNED
  __device__ __forceinline__ void StoreRows(uint32_t box, int row0, int row,
                                            int column) const {
    StoreUnaligned(box, row0, y, m, K, row, column);
  }
#endif
};

// The epilogue: a scale and a shift of each channel, then relu, if FUSED.
struct ChannelEpilogue {
  struct Column {
    float scale, shift;
  };
  const float *scale, *shift;

#if FUSED
  // Not only when the first sums are ready.
  __device__ __forceinline__ void Prefetch() const {
    for (int k = (int)threadIdx.x * 32; k < K; k += kThreads * 32) {
      ::Prefetch(scale + k);
      ::Prefetch(shift + k);
    }
  }
  // Without a branch, so that the loads of 64 columns are in flight together.
  __device__ __forceinline__ void LoadPair(int column, Column (&to)[2]) const {
    if constexpr (K % 2 != 0) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int at = min(column + j, K - 1);
        to[j] = {__ldg(scale + at), __ldg(shift + at)};
      }
      return;
    }
    const int at = min(column, K - 2);
    float a[2], b[2];
    ::LoadPair(scale + at, a);
    ::LoadPair(shift + at, b);
#pragma unroll
    for (int j = 0; j < 2; ++j) to[j] = {a[j], b[j]};
  }
  __device__ __forceinline__ float Finish(float sum, const Column& of) const {
    return ::Finish(sum, of.scale, of.shift);
  }
#else
  __device__ void Prefetch() const {}
  __device__ void LoadPair(int, Column (&)[2]) const {}
  __device__ float Finish(float sum, const Column&) const { return sum; }
#endif
};

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    convolution(const __grid_constant__ TensorMap map_x,
                const __grid_constant__ TensorMap map_weights,
                const __grid_constant__ TensorMap map_y,
                const uint16_t* weights, const float* scale, const float* shift,
                uint16_t* y, int m, Walk walk, float* partial, int* arrived) {
  AwaitPredecessors();
  const ChannelEpilogue epilogue{scale, shift};
  epilogue.Prefetch();
  Product(ConvolutionSource{&map_x, &map_weights, weights}, epilogue,
          Pixels{&map_y, y, m}, m, K, R * kAcross * kPieces, walk, partial,
          arrived);
}
