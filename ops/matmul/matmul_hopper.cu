// c[m, n] = a[m, k] * b[k, n] on Hopper: tensor cores (wgmma) fed by the bulk
// copy engine (TMA) through a ring of barriers, f32 accumulation, persistent.
//
// One warpgroup produces: its first thread loads tiles of a and b into a ring
// of `stages` slots, b's (or a's) shared by the blocks of a cluster. The others
// consume: each multiplies M_TILES times 64 rows. Results leave through shared
// memory and TMA while the producer already loads the next tile.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   CONSUMERS 1|2|3; M_TILES 1|2; BN 64|128|192|256; CLUSTER_M, CLUSTER_N 1|2;
//   SPLIT 0|1 (k has several parts, summed in order, so that results repeat).
// `stages`, at most kMaxStages, `group` (rows of tiles walked together) and
// `parts` (of k; schedule.cuh) are arguments: one compilation serves all
// configs that differ in these alone.
//
// Loops over tiles and steps stay as they are (unroll 1): the compiler would
// peel steps off, which doubles the time that it takes and gains nothing.
//
// a and c may have any m; k and n must be multiples of 8 (TMA strides are
// multiples of 16 bytes).

#include "hopper.cuh"
#include "schedule.cuh"

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
constexpr int kMaxStages = 12;

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if CLUSTER_M * CLUSTER_N > 1
    __cluster_dims__(CLUSTER_M* CLUSTER_N, 1, 1)
#endif
        matmul(const __grid_constant__ TensorMap map_a,
               const __grid_constant__ TensorMap map_b,
               const __grid_constant__ TensorMap map_c, int m, int n, int k,
               int stages, int group, int parts, float* partial, int* arrived) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * kMaxStages];
#if SPLIT
  __shared__ int is_alone[CONSUMERS], is_last[CONSUMERS];
#endif
  // The swizzle pattern repeats every 1024 bytes.
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers);
  const uint32_t empty = full + 8 * kMaxStages;
  int rank = 0;
#if CLUSTER_M * CLUSTER_N > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  const int rank_m = rank % CLUSTER_M, rank_n = rank / CLUSTER_M;
  const int warpgroup = threadIdx.x / 128;

  if (threadIdx.x == 0) {
    PrefetchMap(&map_a);
    PrefetchMap(&map_b);
    PrefetchMap(&map_c);
    for (int i = 0; i < stages; ++i) {
      BarrierInit(full + 8 * i, 1);
      // Whoever fills a slot here waits for all who still read its copy there.
      BarrierInit(empty + 8 * i, CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));
    }
    BarrierInitDone();
  }
  if (kClusterSize > 1) {
    ClusterSync();
  } else {
    __syncthreads();
  }
  const int tiles_m = (m + kBm * CLUSTER_M - 1) / (kBm * CLUSTER_M);
  const int tiles_n = (n + kBn * CLUSTER_N - 1) / (kBn * CLUSTER_N);
  Schedule<SPLIT> schedule(tiles_m, tiles_n, (k + kBk - 1) / kBk, group, parts,
                           blockIdx.x / kClusterSize, gridDim.x / kClusterSize);
  Work work;
  int slot = 0, phase = 0;

  if (warpgroup == 0) {
    GiveRegisters<CONSUMERS, 1>();
    if (threadIdx.x == 0) {
      uint16_t mask_a = 0, mask_b = 0;
      for (int j = 0; j < CLUSTER_N; ++j)
        mask_a |= 1 << (rank_m + j * CLUSTER_M);
      for (int i = 0; i < CLUSTER_M; ++i)
        mask_b |= 1 << (i + rank_n * CLUSTER_M);
#pragma unroll 1
      while (schedule.Next(work)) {
        const int m0 = (work.row * CLUSTER_M + rank_m) * kBm;
        const int n0 = (work.column * CLUSTER_N + rank_n) * kBn;
#pragma unroll 1
        for (int step = work.step; step < work.end; ++step) {
          BarrierWait(empty + 8 * slot, phase ^ 1);
          const uint32_t barrier = full + 8 * slot;
          const uint32_t to_a = ring + slot * kStageBytes;
          const uint32_t to_b = to_a + kBytesA;
          BarrierExpect(barrier, kStageBytes);
          if (CLUSTER_N == 1) {
            LoadTile(to_a, &map_a, barrier, step * kBk, m0);
          } else {
            const int rows = kBm / CLUSTER_N;
            LoadTileMulticast(to_a + rank_n * rows * 128, &map_a, barrier,
                              step * kBk, m0 + rank_n * rows, mask_a);
          }
          for (int chunk = rank_m; chunk < kChunks; chunk += CLUSTER_M) {
            const uint32_t to = to_b + chunk * kBk * 128;
            if (CLUSTER_M == 1) {
              LoadTile(to, &map_b, barrier, n0 + chunk * 64, step * kBk);
            } else {
              LoadTileMulticast(to, &map_b, barrier, n0 + chunk * 64,
                                step * kBk, mask_b);
            }
          }
          if (++slot == stages) slot = 0, phase ^= 1;
        }
      }
    }
  } else {
    TakeRegisters<CONSUMERS, 1>();
    const int consumer = warpgroup - 1;
    const int thread = threadIdx.x % 128;
    const int lane = thread % 32, warp = thread / 32;
    const uint32_t store =
        ring + stages * kStageBytes + consumer * kStoreSlots * kBoxC;
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
#pragma unroll 1
    while (schedule.Next(work)) {
      const int m0 = (work.row * CLUSTER_M + rank_m) * kBm;
      const int n0 = (work.column * CLUSTER_N + rank_n) * kBn;
      float d[M_TILES][kAccumulators];
      int previous = -1;
#pragma unroll 1
      for (int step = work.step; step < work.end; ++step) {
        BarrierWait(full + 8 * slot, phase);
        const uint32_t at_a =
            ring + slot * kStageBytes + consumer * M_TILES * 64 * 128;
        const uint32_t at_b = ring + slot * kStageBytes + kBytesA;
#pragma unroll
        for (int t = 0; t < M_TILES; ++t) Pin(d[t]);
        ProductFence();
#pragma unroll
        for (int inner = 0; inner < kBk / 16; ++inner) {
          const uint64_t b = DescriptorOfColumns(at_b, kBk, inner);
#pragma unroll
          for (int t = 0; t < M_TILES; ++t) {
            Multiply<kBn, 1>(d[t], DescriptorOfRows(at_a + t * 64 * 128, inner),
                             b, step > work.step || inner > 0);
          }
        }
        ProductCommit();
        // The products of the step before are done: its slot is free.
        ProductWait<1>();
        if (previous >= 0) release(previous);
        previous = slot;
        if (++slot == stages) slot = 0, phase ^= 1;
      }
      ProductWait<0>();
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) Pin(d[t]);
      if (previous >= 0) release(previous);

#if SPLIT
      if (work.parts > 1) {
        // The last to arrive sums all parts in order, so that results repeat.
        // The others leave theirs in memory; so does the last, unless it finds
        // itself alone, and its own sums are the first of the order (of two
        // either are).
        constexpr int kMine = M_TILES * kAccumulators;
        const long long piece =
            ((long long)work.tile * kClusterSize + rank) * CONSUMERS + consumer;
        const auto sums_of = [&](int part) {
          const long long place =
              (schedule.PlaceOf(work, part) * kClusterSize + rank) * CONSUMERS +
              consumer;
          return partial + place * kMine * 128 + thread;
        };
        // Of the 64 rows of a product this thread has two, eight apart; those
        // beyond m are nobody's.
        const int row0 = m0 + consumer * M_TILES * 64 + warp * 16 + lane / 4;
        if (thread == 0) {
          is_alone[consumer] = (work.part == 0 || work.parts == 2) &&
                               atomicAdd(&arrived[piece], 0) == work.parts - 1;
        }
        WarpgroupSync(1 + consumer);
        const bool alone = is_alone[consumer];
        if (!alone) {
          float* const mine = sums_of(work.part);
#pragma unroll
          for (int t = 0; t < M_TILES; ++t)
#pragma unroll
            for (int i = 0; i < kAccumulators; ++i)
              if (row0 + t * 64 + i / 2 % 2 * 8 < m)
                mine[(t * kAccumulators + i) * 128] = d[t][i];
          __threadfence();
          WarpgroupSync(1 + consumer);
          if (thread == 0) {
            is_last[consumer] = atomicAdd(&arrived[piece], 1) == work.parts - 1;
          }
          WarpgroupSync(1 + consumer);
          if (!is_last[consumer]) continue;
        }
        if (thread == 0) arrived[piece] = 0;
        __threadfence();
#pragma unroll 1
        for (int part = 0; part < work.parts; ++part) {
          if (alone && part == work.part) continue;
          const bool begins = !alone && part == 0;
          const float* const from = sums_of(part);
#pragma unroll
          for (int t = 0; t < M_TILES; ++t)
#pragma unroll
            for (int i = 0; i < kAccumulators; ++i)
              if (row0 + t * 64 + i / 2 % 2 * 8 < m)
                d[t][i] = __ldcg(&from[(t * kAccumulators + i) * 128]) +
                          (begins ? -0.f : d[t][i]);
        }
      }
#endif
      // 64 rows of 64 columns at a time: registers, swizzled shared memory,
      // TMA.
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) {
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          const uint32_t box = store + store_slot * kBoxC;
          if (thread == 0) StoreWaitRead<kStoreSlots - 1>();
          WarpgroupSync(1 + consumer);
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
          FenceAsync();
          WarpgroupSync(1 + consumer);
          if (thread == 0) {
            StoreTile(&map_c, box, n0 + chunk * 64,
                      m0 + (consumer * M_TILES + t) * 64);
            StoreCommit();
          }
          store_slot ^= 1;
        }
      }
    }
    if (thread == 0) StoreWaitAll();
  }
  // Nobody leaves while others may still write into its shared memory.
  if (kClusterSize > 1) ClusterSync();
}
