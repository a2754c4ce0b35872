// c[m, n] = a[m, k] * b[k, n] on Hopper for few rows: bound by reading b once.
//
// The product is turned round, c' = b' a', so that the wide side of the tensor
// cores' tiles lies along n and little is multiplied for nothing. Blocks of a
// cluster share out k; their sums meet in distributed shared memory.
//
// Compiled at run time with these knobs as macros:
//   INPUT "bf16" or "f16"; CONSUMERS (warpgroups, 64 columns of c each);
//   BM 8|16|32|64 (rows of c); STAGES; SPLIT_K 1|2|4|8 (blocks of a cluster).
//
// k and n must be multiples of 8 (TMA strides are multiples of 16 bytes).

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned short uint16_t;

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

constexpr int kBk = 64;
constexpr int kBn = 64 * CONSUMERS;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kBytesA = BM * kBk * 2;
constexpr int kStageBytes = kBytesB + (kBytesA + 1023) / 1024 * 1024;
constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr int kAccumulators = BM / 2;

#define D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#if BM == 8
#define SHAPE "m64n8k16"
#define REGISTERS "%0,%1,%2,%3"
#define OPERANDS D4(0)
#define OTHERS "%4, %5, p"
#define FLAG "%6"
#elif BM == 16
#define SHAPE "m64n16k16"
#define REGISTERS "%0,%1,%2,%3,%4,%5,%6,%7"
#define OPERANDS D4(0), D4(4)
#define OTHERS "%8, %9, p"
#define FLAG "%10"
#elif BM == 32
#define SHAPE "m64n32k16"
#define REGISTERS "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define OPERANDS D4(0), D4(4), D4(8), D4(12)
#define OTHERS "%16, %17, p"
#define FLAG "%18"
#else
#define SHAPE "m64n64k16"
#define REGISTERS                                                          \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19," \
  "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define OPERANDS \
  D4(0), D4(4), D4(8), D4(12), D4(16), D4(20), D4(24), D4(28)
#define OTHERS "%32, %33, p"
#define FLAG "%34"
#endif

// d (+)= b'[64, 16] * a'[16, BM]; b' runs along n in memory, a' along k.
__device__ __forceinline__ void Wgmma(float (&d)[kAccumulators], uint64_t b,
                                      uint64_t a, int accumulate) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, " FLAG
               ", 0;"
               "wgmma.mma_async.sync.aligned." SHAPE ".f32." INPUT "." INPUT
               " {" REGISTERS "}, " OTHERS ", 1, 1, 1, 0;}"
               : OPERANDS
               : "l"(b), "l"(a), "r"(accumulate));
}
__device__ __forceinline__ uint64_t Descriptor(uint32_t address) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) |
         (1ull << 62);
}
__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}
__device__ __forceinline__ void BarrierInit(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(count));
}
__device__ __forceinline__ void BarrierExpect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   barrier),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void BarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
__device__ __forceinline__ void BarrierWait(uint32_t barrier, int phase) {
  asm volatile(
      "{.reg .pred p;"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
      "@p bra done; bra again; done:}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
__device__ __forceinline__ void LoadTile(uint32_t to, const TensorMap* map,
                                         uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
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
                      int m, int n, int k) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * STAGES];
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers);
  const uint32_t empty = full + 8 * STAGES;
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
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_a) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_b) : "memory");
    for (int i = 0; i < STAGES; ++i) {
      BarrierInit(full + 8 * i, 1);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
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
        if (++slot == STAGES) slot = 0, phase ^= 1;
      }
    }
  } else {
    int slot = 0, phase = 0, previous = -1;
    for (int step = begin; step < end; ++step) {
      BarrierWait(full + 8 * slot, phase);
      const uint32_t at = ring + slot * kStageBytes;
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int inner = 0; inner < kBk / 16; ++inner)
        Wgmma(d, Descriptor(at + warpgroup * kBk * 128 + inner * 16 * 128),
              Descriptor(at + kBytesB + inner * 32), 1);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (previous >= 0 && threadIdx.x % 128 == 0)
        BarrierArrive(empty + 8 * previous);
      previous = slot;
      if (++slot == STAGES) slot = 0, phase ^= 1;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i)
      asm volatile("" : "+f"(d[i])::"memory");
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
