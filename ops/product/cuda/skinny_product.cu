// c[m, n] = f(a[m, k] * b[k, n]) on Hopper for few rows: bound by reading b
// once.
//
// The transposed product is computed, c' = b' a', so that the wide side of the
// tensor cores' tiles lies along n and little is multiplied for nothing. Blocks
// of a cluster share out k; their sums meet in distributed shared memory.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   CONSUMERS (warpgroups, 64 columns of c each);
//   BM, rows of c, a multiple of 8 up to 128; SPLIT_K 1|2|4|8|16 (blocks of a
//   cluster); UNALIGNED 0|1|2|3: rows of a (1), of b and c (2) or of all are no
//   multiples of 16 bytes (unaligned.cuh); epilogue.cuh's.
// `stages`, at most kMaxStages, is an argument, so that one compilation serves
// all configs that differ in it alone.

#include "cluster.cuh"
#include "columns.cuh"
#include "epilogue.cuh"
#include "hopper.cuh"
#include "predecessors.cuh"
#include "unaligned.cuh"

constexpr int kBk = 64;
constexpr int kBn = 64 * CONSUMERS;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kBytesA = BM * kBk * 2;
constexpr int kSlab = kBk * 128;
constexpr int kAtA = CONSUMERS * kSlab;  // of a stage
// Rows of sums in shared memory: four of them begin in different banks.
constexpr int kPitch = kBn + 4;
constexpr int kStageBytes = kAtA + (kBytesA + 1023) / 1024 * 1024;
constexpr int kAccumulators = BM / 2;
constexpr int kMaxStages = 12;
constexpr bool kUnalignedA = UNALIGNED & 1, kUnalignedB = UNALIGNED & 2;
// Arrivals that fill a slot: of the thread that has the engine load, and of the
// warps that load themselves.
// Warpgroups; two load by themselves where there are registers for two.
constexpr int kProducers =
    UNALIGNED && 128 * (CONSUMERS + 2) * (BM / 2 + 40) <= 65536 ? 2 : 1;
constexpr int kFillers = (UNALIGNED != 3) + (UNALIGNED ? 4 * kProducers : 0);
constexpr int kThreads = 128 * (CONSUMERS + kProducers);

// Describes both operands in their stored layout: b' runs along n in memory, a'
// along k.
__device__ __forceinline__ uint64_t DescriptorOf(uint32_t address) {
  return Descriptor(address, 16, 1024);
}
__device__ __forceinline__ uint16_t Round(float x) {
  uint16_t y;
  asm("cvt.rn." INPUT ".f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

struct Operands {
  const TensorMap *a, *b;  // not used where rows are unaligned
  const uint16_t *matrix_a, *matrix_b;
  int m, n, k, m0, n0;
};

struct Ring {
  uint32_t begin, full, empty;
  int stages;
};

// Lets the copy engine load the tiles of one step.
__device__ __forceinline__ void LoadStep(const Operands& of, uint32_t to,
                                         uint32_t barrier, int step) {
  BarrierExpect(barrier,
                (kUnalignedA ? 0 : kBytesA) + (kUnalignedB ? 0 : kBytesB));
  if (!kUnalignedB) {
#pragma unroll
    for (int i = 0; i < CONSUMERS; ++i)
      LoadTile(to + i * kSlab, of.b, barrier, of.n0 + i * 64, step * kBk);
  }
  if (!kUnalignedA) LoadTile(to + kAtA, of.a, barrier, step * kBk, of.m0);
}

#if UNALIGNED
constexpr int kLoaders = 128 * kProducers;  // threads
typedef UnalignedTile<kLoaders, kUnalignedA ? BM : 0, kBk / 8, kSlab> TileA;
typedef UnalignedTile<kLoaders, kUnalignedB ? kBk : 0, kBn / 8, kSlab> TileB;
constexpr int kFetched = 4;  // steps

// By all threads of the producer.
__device__ __forceinline__ void Produce(const Operands& of, const Ring& ring,
                                        int begin, int end) {
  int slot = 0, phase = 0;
  const UnalignedMatrix a{of.matrix_a, of.m, of.k};
  const UnalignedMatrix b{of.matrix_b, of.k, of.n};
  const uint32_t words = ring.begin + ring.stages * kStageBytes;
  const int thread = threadIdx.x - 128 * CONSUMERS;
  const auto of_a = [&](int i) {
    return words + i * (TileA::kBytes + TileB::kBytes);
  };
  const auto of_b = [&](int i) { return of_a(i) + TileA::kBytes; };
  const auto fetch = [&](int step, int i) {
    if constexpr (kUnalignedA)
      TileA::Fetch(a, thread, of.m0, step * kBk, of_a(i));
    if constexpr (kUnalignedB)
      TileB::Fetch(b, thread, step * kBk, of.n0, of_b(i));
  };
  const auto write = [&](int step, int i) {
    BarrierWait(ring.empty + 8 * slot, phase ^ 1);
    const uint32_t to = ring.begin + slot * kStageBytes;
    if (UNALIGNED != 3 && threadIdx.x == 128 * CONSUMERS)
      LoadStep(of, to, ring.full + 8 * slot, step);
    if constexpr (kUnalignedA) {
      // Beyond the last k there are zeros.
      if ((step + 1) * kBk <= of.k) {
        TileA::template Write<false>(a, thread, of.m0, step * kBk, of_a(i),
                                     to + kAtA);
      } else {
        TileA::template Write<true>(a, thread, of.m0, step * kBk, of_a(i),
                                    to + kAtA);
      }
    }
    if constexpr (kUnalignedB)
      TileB::template Write<false>(b, thread, step * kBk, of.n0, of_b(i), to);
    FenceAsync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) BarrierArrive(ring.full + 8 * slot);
    if (++slot == ring.stages) slot = 0, phase ^= 1;
  };
  FetchAhead<kFetched, kLoaders>(1, begin, end, fetch, write);
}
#else
// By one thread.
__device__ __forceinline__ void Produce(const Operands& of, const Ring& ring,
                                        int begin, int end) {
  int slot = 0, phase = 0;
  for (int step = begin; step < end; ++step) {
    BarrierWait(ring.empty + 8 * slot, phase ^ 1);
    LoadStep(of, ring.begin + slot * kStageBytes, ring.full + 8 * slot, step);
    if (++slot == ring.stages) slot = 0, phase ^= 1;
  }
}
#endif

// Adds up the products of `steps` slots of the ring.
__device__ __forceinline__ void MultiplySteps(const Ring& ring, int steps,
                                              float (&d)[kAccumulators]) {
  int slot = 0, phase = 0, previous = -1;
  for (int step = 0; step < steps; ++step) {
    BarrierWait(ring.full + 8 * slot, phase);
    const uint32_t at = ring.begin + slot * kStageBytes;
    const uint32_t slab = at + threadIdx.x / 128 * kSlab;
    Pin(d);
    ProductFence();
#pragma unroll
    for (int inner = 0; inner < kBk / 16; ++inner)
      MultiplyColumns<BM, 0, 1>(d, DescriptorOf(slab + inner * 16 * 128),
                                DescriptorOf(at + kAtA + inner * 32), 1);
    ProductCommit();
    // The products of the step before are done: its slot is free.
    ProductWait<1>();
    if (previous >= 0 && threadIdx.x % 128 == 0)
      BarrierArrive(ring.empty + 8 * previous);
    previous = slot;
    if (++slot == ring.stages) slot = 0, phase ^= 1;
  }
  ProductWait<0>();
  Pin(d);
}

// Each block of the cluster sums its share of the tile, in order of k.
__device__ __forceinline__ void SumShares(const MatrixEpilogue& epilogue,
                                          uint16_t* c, int m, int n, int m0,
                                          int n0, int part, uint32_t sums) {
  constexpr int kQuads = kBn / 4;
  for (int i = part * kThreads + threadIdx.x; i < BM * kQuads;
       i += SPLIT_K * kThreads) {
    const int at = i / kQuads, column = i % kQuads * 4;
    const int row = m0 + at;
    if (row >= m) break;
    float s[4] = {0, 0, 0, 0};
#pragma unroll
    for (int from = 0; from < SPLIT_K; ++from) {
      float v[4];
      asm volatile(
          "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %4, %5;"
          "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];}"
          : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
          : "r"(sums + (at * kPitch + column) * 4), "r"(from)
          : "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) s[j] += v[j];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      MatrixEpilogue::Column of;
      epilogue.Load(n0 + column + j, of);
      s[j] = epilogue.Finish(s[j], of);
    }
    uint16_t* const to = c + (long long)row * n + n0 + column;
    if (!kUnalignedB && n0 + column + 3 < n) {
      *(ushort4*)to =
          make_ushort4(Round(s[0]), Round(s[1]), Round(s[2]), Round(s[3]));
    } else {
      for (int j = 0; j < 4 && n0 + column + j < n; ++j) to[j] = Round(s[j]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if SPLIT_K > 1
    __cluster_dims__(SPLIT_K, 1, 1)
#endif
        skinny_product(const __grid_constant__ TensorMap map_a,
                       const __grid_constant__ TensorMap map_b,
                       const uint16_t* a, const uint16_t* b,
                       const uint16_t* bias, uint16_t* c, int m, int n, int k,
                       int stages) {
  AwaitPredecessors();
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
    if (!kUnalignedA) PrefetchMap(&map_a);
    if (!kUnalignedB) PrefetchMap(&map_b);
    for (int i = 0; i < stages; ++i) {
      BarrierInit(full + 8 * i, kFillers);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    BarrierInitDone();
  }
  const MatrixEpilogue epilogue(bias, n);
  epilogue.Prefetch(kThreads);
  __syncthreads();
  float d[kAccumulators];
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) d[i] = 0;

  const Ring slots{ring, full, empty, stages};
  if (warpgroup >= CONSUMERS) {
    const Operands operands{&map_a, &map_b, a, b, m, n, k, m0, n0};
    if (UNALIGNED || threadIdx.x % 128 == 0)
      Produce(operands, slots, begin, end);
  } else {
    MultiplySteps(slots, end - begin, d);
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
      sums[row * kPitch + column + i / 2 % 2 * 8] = d[i];
    }
  }
#if SPLIT_K > 1
  ClusterSync();
#else
  __syncthreads();
#endif
  SumShares(epilogue, c, m, n, m0, n0, part, ring);
#if SPLIT_K > 1
  // Nobody leaves while others may still read its sums.
  __syncwarp();
  ClusterSyncRelaxed();
#endif
}
