// c[m, n] = a[m, k] * b[k, n] on Hopper for few rows: bound by reading b once.
//
// The product is turned round, c' = b' a', so that the wide side of the tensor
// cores' tiles lies along n and little is multiplied for nothing. Blocks of a
// cluster share out k; their sums meet in distributed shared memory.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   CONSUMERS (warpgroups, 64 columns of c each);
//   BM 8|16|32|64 (rows of c); SPLIT_K 1|2|4|8 (blocks of a cluster).
// `stages`, at most kMaxStages, is an argument, so that one compilation serves
// all configs that differ in it alone.
//
// k and n must be multiples of 8 (TMA strides are multiples of 16 bytes).

#include "hopper.cuh"

constexpr int kBk = 64;
constexpr int kBn = 64 * CONSUMERS;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kBytesA = BM * kBk * 2;
constexpr int kStageBytes = kBytesB + (kBytesA + 1023) / 1024 * 1024;
constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr int kAccumulators = BM / 2;
constexpr int kMaxStages = 12;

// As both factors lie: b' runs along n in memory, a' along k.
__device__ __forceinline__ uint64_t DescriptorOf(uint32_t address) {
  return Descriptor(address, 16, 1024);
}
__device__ __forceinline__ uint16_t Round(float x) {
  uint16_t y;
  asm("cvt.rn." INPUT ".f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if SPLIT_K > 1
    __cluster_dims__(SPLIT_K, 1, 1)
#endif
        matmul_skinny(const __grid_constant__ TensorMap map_a,
                      const __grid_constant__ TensorMap map_b, uint16_t* c,
                      int m, int n, int k, int stages) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * kMaxStages];
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers);
  const uint32_t empty = full + 8 * kMaxStages;
  int part = 0;
#if SPLIT_K > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(part));
#endif
  const int tiles_n = (n + kBn - 1) / kBn;
  const int tile = blockIdx.x / SPLIT_K;
  const int n0 = tile % tiles_n * kBn, m0 = tile / tiles_n * BM;
  const int steps = (k + kBk - 1) / kBk;
  const int begin = (int)((long long)steps * part / SPLIT_K);
  const int end = (int)((long long)steps * (part + 1) / SPLIT_K);
  const int warpgroup = threadIdx.x / 128;

  if (threadIdx.x == 0) {
    PrefetchMap(&map_a);
    PrefetchMap(&map_b);
    for (int i = 0; i < stages; ++i) {
      BarrierInit(full + 8 * i, 1);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    BarrierInitDone();
  }
  __syncthreads();
  float d[kAccumulators];
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) d[i] = 0;

  if (warpgroup == CONSUMERS) {
    if (threadIdx.x % 128 == 0) {
      int slot = 0, phase = 0;
      for (int step = begin; step < end; ++step) {
        BarrierWait(empty + 8 * slot, phase ^ 1);
        const uint32_t to = ring + slot * kStageBytes;
        BarrierExpect(full + 8 * slot, kBytesA + kBytesB);
#pragma unroll
        for (int i = 0; i < CONSUMERS; ++i)
          LoadTile(to + i * kBk * 128, &map_b, full + 8 * slot, n0 + i * 64,
                   step * kBk);
        LoadTile(to + kBytesB, &map_a, full + 8 * slot, step * kBk, m0);
        if (++slot == stages) slot = 0, phase ^= 1;
      }
    }
  } else {
    int slot = 0, phase = 0, previous = -1;
    for (int step = begin; step < end; ++step) {
      BarrierWait(full + 8 * slot, phase);
      const uint32_t at = ring + slot * kStageBytes;
      Pin(d);
      ProductFence();
#pragma unroll
      for (int inner = 0; inner < kBk / 16; ++inner)
        Multiply<BM, 0, 1>(
            d, DescriptorOf(at + warpgroup * kBk * 128 + inner * 16 * 128),
            DescriptorOf(at + kBytesB + inner * 32), 1);
      ProductCommit();
      ProductWait<1>();
      if (previous >= 0 && threadIdx.x % 128 == 0)
        BarrierArrive(empty + 8 * previous);
      previous = slot;
      if (++slot == stages) slot = 0, phase ^= 1;
    }
    ProductWait<0>();
    Pin(d);
  }
  // Sums go to shared memory as [row of c][column]; the ring is free by then.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  float* sums = (float*)(shared_raw + (ring - SharedAddress(shared_raw)));
  __syncthreads();
  if (warpgroup < CONSUMERS) {
    const int column = warpgroup * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) {
      const int row = i / 4 * 8 + lane % 4 * 2 + i % 2;
      sums[row * kBn + column + i / 2 % 2 * 8] = d[i];
    }
  }
#if SPLIT_K > 1
  ClusterSync();
#else
  __syncthreads();
#endif
  // Each block of the cluster sums its share of the tile, in order of k.
  const int rows = min(BM, m - m0);
  constexpr int kQuads = kBn / 4;
  for (int i = part * kThreads + threadIdx.x; i < rows * kQuads;
       i += SPLIT_K * kThreads) {
    const int row = i / kQuads, column = i % kQuads * 4;
    float s[4] = {0, 0, 0, 0};
#pragma unroll
    for (int from = 0; from < SPLIT_K; ++from) {
      float v[4];
      asm volatile(
          "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %4, %5;"
          "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];}"
          : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
          : "r"(ring + (row * kBn + column) * 4), "r"(from)
          : "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) s[j] += v[j];
    }
    uint16_t* to = c + (long long)(m0 + row) * n + n0 + column;
    if (n0 + column + 3 < n) {
      *(ushort4*)to = make_ushort4(Round(s[0]), Round(s[1]), Round(s[2]), Round(s[3]));
    } else {
      for (int j = 0; j < 4 && n0 + column + j < n; ++j) to[j] = Round(s[j]);
    }
  }
#if SPLIT_K > 1
  ClusterSync();  // nobody leaves while others may still read its sums
#endif
}
