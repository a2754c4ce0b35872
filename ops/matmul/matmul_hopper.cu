// c[m, n] = a[m, k] * b[k, n] on Hopper: tensor cores (wgmma) fed by the bulk
// copy engine (TMA) through a ring of barriers, f32 accumulation, persistent.
//
// One warpgroup produces: its first thread loads tiles of a and b into a ring
// of STAGES slots, b's (or a's) shared by the blocks of a cluster. The others
// consume: each multiplies M_TILES times 64 rows. Results leave through shared
// memory and TMA while the producer already loads the next tile.
//
// Compiled at run time with these knobs as macros:
//   INPUT "bf16" or "f16"; CONSUMERS 1|2|3; M_TILES 1|2; BN 64|128|192|256;
//   STAGES; CLUSTER_M, CLUSTER_N 1|2; GROUP (rows of tiles walked together);
//   SPLIT_K (parts of k that are summed in order, so that results repeat).
//
// a and c may have any m; k and n must be multiples of 8 (TMA strides are
// multiples of 16 bytes).

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned short uint16_t;

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

constexpr int kBm = 64 * CONSUMERS * M_TILES;
constexpr int kBn = BN;
constexpr int kBk = 64;  // 128 bytes: one row of the swizzle
constexpr int kChunks = kBn / 64;
constexpr int kBytesA = kBm * kBk * 2;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kStageBytes = kBytesA + kBytesB;
constexpr int kBoxC = 64 * 64 * 2;  // what one TMA store takes
constexpr int kStoreSlots = 2;      // per consumer
constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr int kClusterSize = CLUSTER_M * CLUSTER_N;
constexpr int kAccumulators = kBn / 2;

#define D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define D16(i) D4(i), D4((i) + 4), D4((i) + 8), D4((i) + 12)
#define D32(i) D16(i), D16((i) + 16)
#define R0                                                                   \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"   \
  "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define R1                                                                   \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,"    \
  "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define R2                                                                   \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,"    \
  "%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define R3                                                                   \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110," \
  "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,"   \
  "%125,%126,%127"
#if BN == 64
#define SHAPE "m64n64k16"
#define REGISTERS R0
#define OPERANDS D32(0)
#define OTHERS "%32, %33, p"
#define FLAG "%34"
#elif BN == 128
#define SHAPE "m64n128k16"
#define REGISTERS R0 R1
#define OPERANDS D32(0), D32(32)
#define OTHERS "%64, %65, p"
#define FLAG "%66"
#elif BN == 192
#define SHAPE "m64n192k16"
#define REGISTERS R0 R1 R2
#define OPERANDS D32(0), D32(32), D32(64)
#define OTHERS "%96, %97, p"
#define FLAG "%98"
#else
#define SHAPE "m64n256k16"
#define REGISTERS R0 R1 R2 R3
#define OPERANDS D32(0), D32(32), D32(64), D32(96)
#define OTHERS "%128, %129, p"
#define FLAG "%130"
#endif

// d (+)= a[64, 16] * b[16, BN], both in shared memory; b's rows run along n.
__device__ __forceinline__ void Wgmma(float (&d)[kAccumulators], uint64_t a,
                                      uint64_t b, int accumulate) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, " FLAG
               ", 0;"
               "wgmma.mma_async.sync.aligned." SHAPE ".f32." INPUT "." INPUT
               " {" REGISTERS "}, " OTHERS ", 1, 1, 0, 1;}"
               : OPERANDS
               : "l"(a), "l"(b), "r"(accumulate));
}

// The compiler must not move accumulators across asynchronous products.
__device__ __forceinline__ void Pin(float (&d)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
__device__ __forceinline__ void WgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// A matrix descriptor: 128-byte swizzle (PTX ISA, "Asynchronous warpgroup level
// matrix shared memory layout"). Offsets in bytes.
__device__ __forceinline__ uint64_t Descriptor(uint32_t address,
                                               uint32_t leading,
                                               uint32_t stride) {
  return (uint64_t)((address & 0x3ffff) >> 4) |
         ((uint64_t)(leading >> 4) << 16) | ((uint64_t)(stride >> 4) << 32) |
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
__device__ __forceinline__ void BarrierWait(uint32_t barrier, int phase) {
  asm volatile(
      "{.reg .pred p;"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
      "@p bra done; bra again; done:}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
// Arrives at the barrier at the same place in block `rank` of the cluster.
__device__ __forceinline__ void BarrierArriveAt(uint32_t barrier, int rank) {
  asm volatile(
      "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(
          barrier),
      "r"(rank)
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
__device__ __forceinline__ void LoadTileMulticast(uint32_t to,
                                                  const TensorMap* map,
                                                  uint32_t barrier, int x,
                                                  int y, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(mask)
      : "memory");
}
__device__ __forceinline__ void StoreTile(const TensorMap* map, uint32_t from,
                                          int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, "
      "%3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
__device__ __forceinline__ uint32_t Pack(float low, float high) {
  uint32_t packed;
  asm("cvt.rn." INPUT "x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// What the blocks do, in turns: for each tile of c and part of k.
struct Work {
  int m0, n0, k_begin, k_end, tile, part;
};

struct Schedule {
  int tiles_m, tiles_n, steps_k, items, clusters;

  __device__ Schedule(int m, int n, int k) {
    tiles_m = (m + kBm * CLUSTER_M - 1) / (kBm * CLUSTER_M);
    tiles_n = (n + kBn * CLUSTER_N - 1) / (kBn * CLUSTER_N);
    steps_k = (k + kBk - 1) / kBk;
    items = tiles_m * tiles_n * SPLIT_K;
    clusters = gridDim.x / kClusterSize;
  }
  __device__ Work At(int item, int rank) const {
    Work work;
    const int tile = item / SPLIT_K;
    work.part = item % SPLIT_K;
    // GROUP rows of tiles are walked together, column by column, so that what
    // runs at once reads few different rows and columns.
    const int in_group = GROUP * tiles_n;
    const int first_m = tile / in_group * GROUP;
    const int rows = min(tiles_m - first_m, GROUP);
    const int m = first_m + tile % in_group % rows;
    const int n = tile % in_group / rows;
    work.m0 = (m * CLUSTER_M + rank % CLUSTER_M) * kBm;
    work.n0 = (n * CLUSTER_N + rank / CLUSTER_M) * kBn;
    work.tile = tile * kClusterSize + rank;
    work.k_begin = (int)((long long)steps_k * work.part / SPLIT_K);
    work.k_end = (int)((long long)steps_k * (work.part + 1) / SPLIT_K);
    return work;
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if CLUSTER_M * CLUSTER_N > 1
    __cluster_dims__(CLUSTER_M* CLUSTER_N, 1, 1)
#endif
        matmul(const __grid_constant__ TensorMap map_a,
               const __grid_constant__ TensorMap map_b,
               const __grid_constant__ TensorMap map_c, int m, int n, int k,
               float* partial, int* arrived) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * STAGES];
#if SPLIT_K > 1
  __shared__ int is_last[CONSUMERS];
#endif
  // The swizzle pattern repeats every 1024 bytes.
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers);
  const uint32_t empty = full + 8 * STAGES;
  int rank = 0;
#if CLUSTER_M * CLUSTER_N > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  const int rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M;
  const int warpgroup = threadIdx.x / 128;

  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_a) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_b) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map_c) : "memory");
    for (int i = 0; i < STAGES; ++i) {
      BarrierInit(full + 8 * i, 1);
      // Whoever fills a slot here waits for all who still read its copy there.
      BarrierInit(empty + 8 * i, CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (kClusterSize > 1) {
    ClusterSync();
  } else {
    __syncthreads();
  }
  const Schedule schedule(m, n, k);
  int slot = 0, phase = 0;

  if (warpgroup == 0) {
#if CONSUMERS == 2
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
#elif CONSUMERS == 3
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
#endif
    if (threadIdx.x == 0) {
      uint16_t mask_a = 0, mask_b = 0;
      for (int j = 0; j < CLUSTER_N; ++j) mask_a |= 1 << (rank_m + j * CLUSTER_M);
      for (int i = 0; i < CLUSTER_M; ++i) mask_b |= 1 << (i + rank_n * CLUSTER_M);
      for (int item = blockIdx.x / kClusterSize; item < schedule.items;
           item += schedule.clusters) {
        const Work work = schedule.At(item, rank);
        for (int step = work.k_begin; step < work.k_end; ++step) {
          BarrierWait(empty + 8 * slot, phase ^ 1);
          const uint32_t barrier = full + 8 * slot;
          const uint32_t to_a = ring + slot * kStageBytes;
          const uint32_t to_b = to_a + kBytesA;
          BarrierExpect(barrier, kStageBytes);
          if (CLUSTER_N == 1) {
            LoadTile(to_a, &map_a, barrier, step * kBk, work.m0);
          } else {
            const int rows = kBm / CLUSTER_N;
            LoadTileMulticast(to_a + rank_n * rows * 128, &map_a, barrier,
                              step * kBk, work.m0 + rank_n * rows, mask_a);
          }
          for (int chunk = rank_m; chunk < kChunks; chunk += CLUSTER_M) {
            const uint32_t to = to_b + chunk * kBk * 128;
            if (CLUSTER_M == 1) {
              LoadTile(to, &map_b, barrier, work.n0 + chunk * 64, step * kBk);
            } else {
              LoadTileMulticast(to, &map_b, barrier, work.n0 + chunk * 64,
                                step * kBk, mask_b);
            }
          }
          if (++slot == STAGES) slot = 0, phase ^= 1;
        }
      }
    }
  } else {
#if CONSUMERS == 2
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
#elif CONSUMERS == 3
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
#endif
    const int consumer = warpgroup - 1;
    const int thread = threadIdx.x % 128;
    const int lane = thread % 32, warp = thread / 32;
    const uint32_t store =
        ring + STAGES * kStageBytes + consumer * kStoreSlots * kBoxC;
    int store_slot = 0;
    const auto release = [&](int which) {
      // One thread each for the blocks whose loads fill this block's slots.
      if (thread < CLUSTER_M + CLUSTER_N - 1) {
        const int to = thread < CLUSTER_M
                           ? thread + rank_n * CLUSTER_M
                           : rank_m + ((rank_n + 1) % CLUSTER_N) * CLUSTER_M;
        BarrierArriveAt(empty + 8 * which, to);
      }
    };
    for (int item = blockIdx.x / kClusterSize; item < schedule.items;
         item += schedule.clusters) {
      const Work work = schedule.At(item, rank);
      float d[M_TILES][kAccumulators];
      int previous = -1;
      for (int step = work.k_begin; step < work.k_end; ++step) {
        BarrierWait(full + 8 * slot, phase);
        const uint32_t at_a = ring + slot * kStageBytes +
                              consumer * M_TILES * 64 * 128;
        const uint32_t at_b = ring + slot * kStageBytes + kBytesA;
#pragma unroll
        for (int t = 0; t < M_TILES; ++t) Pin(d[t]);
        WgmmaFence();
#pragma unroll
        for (int inner = 0; inner < kBk / 16; ++inner) {
          const uint64_t b =
              Descriptor(at_b + inner * 16 * 128, kBk * 128, 1024);
#pragma unroll
          for (int t = 0; t < M_TILES; ++t) {
            const uint64_t a =
                Descriptor(at_a + t * 64 * 128 + inner * 32, 16, 1024);
            Wgmma(d[t], a, b, step > work.k_begin || inner > 0);
          }
        }
        WgmmaCommit();
        // The products of the step before are done: its slot is free.
        WgmmaWait<1>();
        if (previous >= 0) release(previous);
        previous = slot;
        if (++slot == STAGES) slot = 0, phase ^= 1;
      }
      WgmmaWait<0>();
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) Pin(d[t]);
      if (previous >= 0) release(previous);

#if SPLIT_K > 1
      // All parts but the last to arrive leave theirs in memory; the last sums
      // them in order.
      constexpr int kMine = M_TILES * kAccumulators;
      const long long pieces =
          (long long)schedule.tiles_m * schedule.tiles_n * kClusterSize *
          CONSUMERS;
      const long long piece = (long long)work.tile * CONSUMERS + consumer;
      float* mine = partial + (piece + work.part * pieces) * kMine * 128 + thread;
      // Of the 64 rows of a product this thread has two, eight apart; those
      // beyond m are nobody's.
      const int row0 = work.m0 + consumer * M_TILES * 64 + warp * 16 + lane / 4;
#pragma unroll
      for (int t = 0; t < M_TILES; ++t)
#pragma unroll
        for (int i = 0; i < kAccumulators; ++i)
          if (row0 + t * 64 + i / 2 % 2 * 8 < m)
            mine[(t * kAccumulators + i) * 128] = d[t][i];
      __threadfence();
      asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
      if (thread == 0) {
        const int before = atomicAdd(&arrived[piece], 1);
        is_last[consumer] = before == SPLIT_K - 1;
        if (before == SPLIT_K - 1) arrived[piece] = 0;
      }
      asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
      if (!is_last[consumer]) continue;
      __threadfence();
#pragma unroll
      for (int t = 0; t < M_TILES; ++t)
#pragma unroll
        for (int i = 0; i < kAccumulators; ++i) d[t][i] = 0;
      for (int part = 0; part < SPLIT_K; ++part) {
        const float* from = partial + (piece + part * pieces) * kMine * 128 + thread;
#pragma unroll
        for (int t = 0; t < M_TILES; ++t)
#pragma unroll
          for (int i = 0; i < kAccumulators; ++i)
            if (row0 + t * 64 + i / 2 % 2 * 8 < m)
              d[t][i] += __ldcg(&from[(t * kAccumulators + i) * 128]);
      }
#endif
      // 64 rows of 64 columns at a time: registers, swizzled shared memory, TMA.
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) {
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          const uint32_t box = store + store_slot * kBoxC;
          if (thread == 0) {
            asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(
                             kStoreSlots - 1)
                         : "memory");
          }
          asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
          const int row = warp * 16 + lane % 16;
#pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            const int column16 = pair * 2 + lane / 16;  // of 8 elements
            const float* v = &d[t][chunk * 32 + pair * 8];
            const uint32_t to = box + row * 128 + ((column16 ^ (row % 8)) * 16);
            asm volatile(
                "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, "
                "%3, %4};" ::"r"(to),
                "r"(Pack(v[0], v[1])), "r"(Pack(v[2], v[3])),
                "r"(Pack(v[4], v[5])), "r"(Pack(v[6], v[7]))
                : "memory");
          }
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
          if (thread == 0) {
            StoreTile(&map_c, box, work.n0 + chunk * 64,
                      work.m0 + (consumer * M_TILES + t) * 64);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
          }
          store_slot ^= 1;
        }
      }
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  // Nobody leaves while others may still write into its shared memory.
  if (kClusterSize > 1) ClusterSync();
}
