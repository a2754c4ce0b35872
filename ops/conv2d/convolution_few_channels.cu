// The convolutions of images with few channels, a network's first layer, on
// tensor cores from sm_80 on: a place of the filter is less than one copy of 16
// bytes, but a line of the filter lies together in x (S * C elements). So the
// lines of x that a block needs are laid into shared memory as they are, and
// the left factor's registers are read from there, two elements at a time.
//
// A block has LINES lines of output, or 128 pixels of each, and 64 filters; a
// warp takes 32 pixels at a time.
//
// Compiled at run time with elements.cuh's and convolution.cuh's macros and
//   INPUT "bf16" or "f16"; WARPS; LINES. K is a multiple of 8.

#include "elements.cuh"
#include "predecessors.cuh"
// After Element:
#include "convolution.cuh"

constexpr int kThreads = WARPS * 32;
constexpr int kColumns = 64;
// A line of the filter, and all of them, in whole pairs and whole products.
constexpr int kRun = (S * C + 1) / 2 * 2;
constexpr int kSteps = (R * kRun + 15) / 16;
constexpr int kAcross =
    ((Q < 128 ? Q : 128) + 15) / 16 * 16;  // pixels of a line
constexpr int kTilesAcross = (Q + kAcross - 1) / kAcross;
constexpr int kTilesDown = (P + LINES - 1) / LINES;
constexpr int kLinesOfX = (LINES - 1) * STRIDE + R;
constexpr int kPitchX = (kAcross - 1) * STRIDE * C / 2 * 2 + 2 + kRun;
// A pad of 16 bytes a row keeps ldmatrix free of bank conflicts.
constexpr int kPitch = kColumns + 8;
constexpr int kUnits = LINES * kAcross / 16;  // of 16 pixels

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ uint32_t Pair(const uint16_t* at) {
  if constexpr (STRIDE * C % 2 == 0) return *(const uint32_t*)at;
  return at[0] | (uint32_t)at[1] << 16;
}

// The pair of elements at `depth` of the filter and 2 t, from the pixel on that
// the filter begins at. What pads a line of the filter, or all of them, is
// zero: what lies there in x need not be finite. `depth` is known when this is
// compiled.
__device__ __forceinline__ uint32_t PairAt(const uint16_t* pixel, int depth,
                                           int t) {
  const int at = depth + 2 * t;
  int offset = at / kRun * kPitchX + at % kRun;
  bool is_last = at % kRun == kRun - 2;
  if constexpr (kRun >= 8) {  // four pairs see the end of one line at most
    const int within = depth % kRun;
    const bool next = t >= (kRun - within) / 2;
    offset =
        depth / kRun * kPitchX + within + 2 * t + (next ? kPitchX - kRun : 0);
    is_last = t == (kRun - 2 - within) / 2;
  }
  const bool exists = t < (R * kRun - depth + 1) / 2;
  const uint32_t pair = Pair(pixel + (exists ? offset : 0));
  return !exists ? 0 : S * C % 2 != 0 && is_last ? pair & 0xffffu : pair;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    convolution_few_channels(const uint16_t* x, const uint16_t* weights,
                             const float* scale, const float* shift,
                             uint16_t* y) {
  AwaitPredecessors();
  extern __shared__ __align__(16) uint16_t shared[];
  uint16_t* const tile_w = shared;                      // [depth][kPitch]
  uint16_t* const out = tile_w + kSteps * 16 * kPitch;  // [WARPS][16][kPitch]
  uint16_t* const tile_x = out + WARPS * 16 * kPitch;   // [kLinesOfX][kPitchX]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int block = blockIdx.x;
  const int q0 = block % kTilesAcross * kAcross;
  block /= kTilesAcross;
  const int p0 = block % kTilesDown * LINES;
  block /= kTilesDown;
  constexpr int kTilesOfFilters = (K + kColumns - 1) / kColumns;
  const int k0 = block % kTilesOfFilters * kColumns;
  const int image = block / kTilesOfFilters;

  // The padding of a line of the filter is zero.
#pragma unroll 5
  for (int i = threadIdx.x; i < kSteps * 16 * (kColumns / 8); i += kThreads) {
    const int depth = i / (kColumns / 8), k = k0 + i % (kColumns / 8) * 8;
    const int line = depth / kRun, at = depth % kRun;
    uint4 v = {};
    if (line < R && at < S * C && k < K) {
      v = __ldg((const uint4*)(weights + (line * S * C + at) * K + k));
    }
    *(uint4*)(tile_w + depth * kPitch + i % (kColumns / 8) * 8) = v;
  }
  const int first = (q0 * STRIDE - PADDING) * C;  // of a line of x
#pragma unroll 16
  for (int i = threadIdx.x; i < kLinesOfX * kPitchX; i += kThreads) {
    const int h = p0 * STRIDE - PADDING + i / kPitchX;
    const int at = first + i % kPitchX;
    const bool inside = h >= 0 && h < H && at >= 0 && at < W * C;
    tile_x[i] = inside ? __ldg(x + ((long long)image * H + h) * W * C + at) : 0;
  }
  __syncthreads();

  for (int unit = warp * 2; unit < kUnits; unit += WARPS * 2) {
    float sum[2][kColumns / 8][4] = {};
    const uint16_t* from[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int mine = min(unit + i, kUnits - 1) * 16;
      from[i] = tile_x + mine / kAcross * STRIDE * kPitchX +
                (mine % kAcross + lane / 4) * STRIDE * C;
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t a[2][4], b[kColumns / 8][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          a[i][j] = PairAt(from[i] + j % 2 * 8 * STRIDE * C,
                           step * 16 + j / 2 * 8, lane % 4);
        }
      }
#pragma unroll
      for (int j = 0; j < kColumns / 8; j += 2) {
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, "
            "[%4];"
            : "=r"(b[j][0]), "=r"(b[j][1]), "=r"(b[j + 1][0]), "=r"(b[j + 1][1])
            : "r"(SharedAddress(tile_w + (step * 16 + lane % 16) * kPitch +
                                j * 8 + lane / 16 * 8)));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns / 8; ++j) {
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32." INPUT "." INPUT
              ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]),
                "+f"(sum[i][j][3])
              : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                "r"(b[j][0]), "r"(b[j][1]));
        }
      }
    }
    // Through shared memory, so that 16 bytes are written at a time.
    uint16_t* const mine = out + warp * 16 * kPitch;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      __syncwarp();
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j) {
        const int column = j * 8 + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float pair[2];
#pragma unroll
          for (int next = 0; next < 2; ++next) {
            const int k = min(k0 + column + next, K - 1);
            pair[next] = Finish(sum[i][j][half * 2 + next], scale, shift, k);
          }
          *(Elements<2>*)(mine + (lane / 4 + half * 8) * kPitch + column) =
              FromFloats(pair);
        }
      }
      __syncwarp();
      if (unit + i >= kUnits) continue;
      const int p = p0 + (unit + i) * 16 / kAcross;
#pragma unroll
      for (int rows = 0; rows < 16; rows += 4) {
        const int row = rows + lane / 8;
        const int q = q0 + (unit + i) * 16 % kAcross + row;
        const int k = k0 + lane % 8 * 8;
        if (p >= P || q >= Q || k >= K) continue;
        *(uint4*)(y + (((long long)image * P + p) * Q + q) * K + k) =
            *(const uint4*)(mine + row * kPitch + lane % 8 * 8);
      }
    }
  }
}
