// y[m, n] = f(x[m, k] * w[k, n] + bias[n]) on Hopper: the persistent kernel of
// ops/matmul/matmul_hopper.cu without clusters and divided sums, which no tuned
// config of that uses, and with the bias and the activation before results are
// rounded. While one tile's results are activated, the next one's operands
// arrive.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's and
// elements.cuh's:
//   CONSUMERS 1|2|3 (64 rows each); BN 64|128|192|256; STAGES; GROUP (rows of
//   tiles walked together); ACTIVATION 0 none, 1 relu, 2 gelu.

#include "elements.cuh"
#include "functions.cuh"
#include "hopper.cuh"

constexpr int kBm = 64 * CONSUMERS;
constexpr int kBk = 64;  // 128 bytes: one row of the swizzle
constexpr int kChunks = BN / 64;
constexpr int kBytesX = kBm * kBk * 2;
constexpr int kStageBytes = kBytesX + kBk * BN * 2;
constexpr int kBoxY = 64 * 64 * 2;  // what one store takes
constexpr int kStoreSlots = 2;      // per consumer
constexpr int kThreads = 128 * (CONSUMERS + 1);

__device__ __forceinline__ float Activate(float x) {
  return ACTIVATION == 0 ? x : ACTIVATION == 1 ? Relu(x) : Gelu(x);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    linear(const __grid_constant__ TensorMap map_x,
           const __grid_constant__ TensorMap map_w,
           const __grid_constant__ TensorMap map_y, const Element* bias, int m,
           int n, int k) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * STAGES];
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers), empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      BarrierInit(full + 8 * i, 1);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    BarrierInitDone();
  }
  __syncthreads();
  const int tiles_m = (m + kBm - 1) / kBm, tiles_n = (n + BN - 1) / BN;
  const int steps = (k + kBk - 1) / kBk;
  // GROUP rows of tiles are walked together, column by column, so that what
  // runs at once reads few different rows and columns.
  const auto place = [&](int tile, int* m0, int* n0) {
    const int in_group = GROUP * tiles_n;
    const int first_m = tile / in_group * GROUP;
    const int rows = min(tiles_m - first_m, GROUP);
    *m0 = (first_m + tile % in_group % rows) * kBm;
    *n0 = tile % in_group / rows * BN;
  };
  const int warpgroup = threadIdx.x / 128;
  int slot = 0, phase = 0;
  const auto advance = [&] {
    if (++slot == STAGES) slot = 0, phase ^= 1;
  };

  if (warpgroup == 0) {
    GiveRegisters<CONSUMERS, 1>();
    if (threadIdx.x != 0) return;
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
      int m0, n0;
      place(tile, &m0, &n0);
      for (int step = 0; step < steps; ++step) {
        BarrierWait(empty + 8 * slot, phase ^ 1);
        const uint32_t barrier = full + 8 * slot;
        const uint32_t to = ring + slot * kStageBytes;
        BarrierExpect(barrier, kStageBytes);
        LoadTile(to, &map_x, barrier, step * kBk, m0);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          LoadTile(to + kBytesX + chunk * kBk * 128, &map_w, barrier,
                   n0 + chunk * 64, step * kBk);
        }
        advance();
      }
    }
    return;
  }

  TakeRegisters<CONSUMERS, 1>();
  const int consumer = warpgroup - 1;
  const int thread = threadIdx.x % 128;
  const int column = thread % 4 * 2;  // of each 8
  const uint32_t store =
      ring + STAGES * kStageBytes + consumer * kStoreSlots * kBoxY;
  int store_slot = 0;
  for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
    int m0, n0;
    place(tile, &m0, &n0);
    float d[BN / 2];
    int previous = -1;
    for (int step = 0; step < steps; ++step) {
      BarrierWait(full + 8 * slot, phase);
      const uint32_t at_x = ring + slot * kStageBytes + consumer * 64 * 128;
      const uint32_t at_w = ring + slot * kStageBytes + kBytesX;
      Pin(d);
      ProductFence();
#pragma unroll
      for (int at = 0; at < kBk / 16; ++at) {
        Multiply<BN, 1>(d, DescriptorOfRows(at_x, at),
                        DescriptorOfColumns(at_w, kBk, at),
                        step > 0 || at > 0);
      }
      ProductCommit();
      // The products of the step before are done: its slot is free.
      ProductWait<1>();
      if (previous >= 0 && thread == 0) BarrierArrive(empty + 8 * previous);
      previous = slot;
      advance();
    }
    ProductWait<0>();
    Pin(d);
    if (thread == 0) BarrierArrive(empty + 8 * previous);

    // 64 rows of 64 columns at a time: registers, shared memory, memory.
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int at = n0 + chunk * 64 + i * 8 + column;  // n is even
        float pair[2] = {};
        if (at < n) ToFloats(*(const Elements<2>*)(bias + at), pair);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float& value = d[chunk * 32 + i * 4 + j];
          value = Activate(value + pair[j % 2]);
        }
      }
      const uint32_t box = store + store_slot * kBoxY;
      if (thread == 0) StoreWaitRead<kStoreSlots - 1>();
      WarpgroupSync(1 + consumer);
      StoreMatrix(box, d + chunk * 32);
      FenceAsync();
      WarpgroupSync(1 + consumer);
      if (thread == 0) {
        StoreTile(&map_y, box, n0 + chunk * 64, m0 + consumer * 64);
        StoreCommit();
      }
      store_slot ^= 1;
    }
  }
  if (thread == 0) StoreWaitAll();
}
