// c[m, n] = a[m, k] * b[k, n] on Hopper: tensor cores (wgmma) fed by the bulk
// copy engine (TMA) through a ring of barriers, f32 accumulation, persistent.
//
// One warpgroup produces: it loads tiles of a and b into a ring of `stages`
// slots, b's (or a's) shared by the blocks of a cluster. The others consume:
// each computes M_TILES products of 64 rows and COLUMNS columns. Results leave
// through shared memory and TMA while the producer already loads the next tile.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   CONSUMERS 1|2|3; M_TILES 1|2; COLUMNS a multiple of 8 up to 256;
//   TRANSPOSED 0|1: rows of products are rows of c and COLUMNS a multiple of
//   64; or c' = b' a' is computed: they are columns of c, and COLUMNS its rows;
//   UNALIGNED 0|1|2|3: rows of a (1), of b and c (2) or of all are no multiples
//   of 16 bytes (unaligned.cuh); neither TRANSPOSED nor in clusters;
//   CLUSTER_M, CLUSTER_N 1|2;
//   SPLIT 0|1 (k has several parts, summed in order, so that results repeat).
// `stages`, at most kMaxStages, `group` (rows of tiles walked together) and
// `parts` (of k; schedule.cuh) are arguments: one compilation serves all
// configs that differ in these alone.
//
// Loops over tiles and steps stay as they are (unroll 1): the compiler would
// peel steps off, which doubles the time that it takes and gains nothing.

#include "columns.cuh"
#include "hopper.cuh"
#include "schedule.cuh"
#include "unaligned.cuh"

constexpr int kRows = 64 * CONSUMERS * M_TILES;  // of a block's products
constexpr int kBm = TRANSPOSED ? COLUMNS : kRows;
constexpr int kBn = TRANSPOSED ? kRows : COLUMNS;
constexpr int kBk = 64;  // 128 bytes: one row of the swizzle
constexpr int kChunks = kBn / 64;
constexpr int kBytesA = kBm * kBk * 2;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kStageBytes = kBytesA + kBytesB;
constexpr int kBoxC = 64 * 64 * 2;  // results on their way out
// Of each consumer; where the engine writes them, the other one meanwhile.
constexpr int kStoreSlots = UNALIGNED & 2 ? 1 : 2;
// Threads that store a box: one, or each one 8 rows of it.
constexpr int kStorers = TRANSPOSED ? 8 : 1;
constexpr bool kUnalignedA = UNALIGNED & 1, kUnalignedB = UNALIGNED & 2;
// Arrivals that fill a slot: of the thread that has the engine load, and of the
// warps that load themselves.
// Warpgroups: two load by themselves where there are registers for two.
constexpr int kProducers =
    UNALIGNED && 128 * (CONSUMERS + 2) * (M_TILES * COLUMNS / 2 + 40) <= 65536
        ? 2
        : 1;
constexpr int kFillers = (UNALIGNED != 3) + (UNALIGNED ? 4 * kProducers : 0);
constexpr int kThreads = 128 * (CONSUMERS + kProducers);
constexpr int kClusterSize = CLUSTER_M * CLUSTER_N;
constexpr int kAccumulators = COLUMNS / 2;
constexpr int kMaxStages = 16;

static_assert(!UNALIGNED || (!TRANSPOSED && kClusterSize == 1));
static_assert(TRANSPOSED || COLUMNS % 64 == 0);

typedef float Sums[M_TILES][kAccumulators];

// What all threads of a block know.
struct Block {
  int m, n, k;
  int rank, rank_m, rank_n;  // of the cluster
  uint32_t ring, full, empty;
  int stages;

  __device__ int Row(const Work& work) const {
    return (work.row * CLUSTER_M + rank_m) * kBm;
  }
  __device__ int Column(const Work& work) const {
    return (work.column * CLUSTER_N + rank_n) * kBn;
  }
};

// The place in the ring.
struct Place {
  int slot = 0, phase = 0;
  __device__ void Advance(int stages) {
    if (++slot == stages) slot = 0, phase ^= 1;
  }
};

struct Operands {
  const TensorMap *a, *b, *c;  // not used where rows are unaligned
  const uint16_t *matrix_a, *matrix_b;
  uint16_t* matrix_c;
};

// What the engine loads of the tiles of one step.
__device__ __forceinline__ void LoadStep(const Block& block,
                                         const Operands& operands, int slot,
                                         int step, int m0, int n0) {
  const uint32_t barrier = block.full + 8 * slot;
  const uint32_t to_a = block.ring + slot * kStageBytes;
  const uint32_t to_b = to_a + kBytesA;
  BarrierExpect(barrier,
                (kUnalignedA ? 0 : kBytesA) + (kUnalignedB ? 0 : kBytesB));
  if constexpr (!kUnalignedA && CLUSTER_N == 1) {
    LoadTile(to_a, operands.a, barrier, step * kBk, m0);
  } else if constexpr (!kUnalignedA) {
    uint16_t mask = 0;
    for (int j = 0; j < CLUSTER_N; ++j)
      mask |= 1 << (block.rank_m + j * CLUSTER_M);
    const int rows = kBm / CLUSTER_N;
    LoadTileMulticast(to_a + block.rank_n * rows * 128, operands.a, barrier,
                      step * kBk, m0 + block.rank_n * rows, mask);
  }
  if constexpr (!kUnalignedB) {
    uint16_t mask = 0;
    for (int i = 0; i < CLUSTER_M; ++i)
      mask |= 1 << (i + block.rank_n * CLUSTER_M);
    for (int chunk = block.rank_m; chunk < kChunks; chunk += CLUSTER_M) {
      const uint32_t to = to_b + chunk * kBk * 128;
      if (CLUSTER_M == 1) {
        LoadTile(to, operands.b, barrier, n0 + chunk * 64, step * kBk);
      } else {
        LoadTileMulticast(to, operands.b, barrier, n0 + chunk * 64, step * kBk,
                          mask);
      }
    }
  }
}

#if UNALIGNED
constexpr int kLoaders = 128 * kProducers;  // threads
typedef UnalignedTile<kLoaders, kUnalignedA ? kBm : 0, kBk / 8, kBk * 128>
    TileA;
typedef UnalignedTile<kLoaders, kUnalignedB ? kBk : 0, kBn / 8, kBk * 128>
    TileB;
constexpr int kFetched = 3;  // steps

// The steps of one tile, by all threads of the producer.
__device__ __forceinline__ void LoadSteps(const Block& block,
                                          const Operands& operands,
                                          const Work& work, Place& place) {
  const int m0 = block.Row(work), n0 = block.Column(work);
  const UnalignedMatrix a{operands.matrix_a, block.m, block.k};
  const UnalignedMatrix b{operands.matrix_b, block.k, block.n};
  const uint32_t words =
      block.ring + block.stages * kStageBytes + CONSUMERS * kStoreSlots * kBoxC;
  const int thread = threadIdx.x;
  const auto of_a = [&](int i) {
    return words + i * (TileA::kBytes + TileB::kBytes);
  };
  const auto of_b = [&](int i) { return of_a(i) + TileA::kBytes; };
  const auto fetch = [&](int step, int i) {
    if constexpr (kUnalignedA) TileA::Fetch(a, thread, m0, step * kBk, of_a(i));
    if constexpr (kUnalignedB) TileB::Fetch(b, thread, step * kBk, n0, of_b(i));
  };
  const auto write = [&](int step, int i) {
    BarrierWait(block.empty + 8 * place.slot, place.phase ^ 1);
    const uint32_t to = block.ring + place.slot * kStageBytes;
    if (UNALIGNED != 3 && threadIdx.x == 0)
      LoadStep(block, operands, place.slot, step, m0, n0);
    if constexpr (kUnalignedA) {
      // Beyond the last k there are zeros.
      if ((step + 1) * kBk <= block.k) {
        TileA::template Write<false>(a, thread, m0, step * kBk, of_a(i), to);
      } else {
        TileA::template Write<true>(a, thread, m0, step * kBk, of_a(i), to);
      }
    }
    if constexpr (kUnalignedB)
      TileB::template Write<false>(b, thread, step * kBk, n0, of_b(i),
                                   to + kBytesA);
    FenceAsync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) BarrierArrive(block.full + 8 * place.slot);
    place.Advance(block.stages);
  };
  FetchAhead<kFetched, kLoaders>(1 + CONSUMERS, work.step, work.end, fetch,
                                 write);
}
#else
// The steps of one tile, by one thread.
__device__ __forceinline__ void LoadSteps(const Block& block,
                                          const Operands& operands,
                                          const Work& work, Place& place) {
  const int m0 = block.Row(work), n0 = block.Column(work);
#pragma unroll 1
  for (int step = work.step; step < work.end; ++step) {
    BarrierWait(block.empty + 8 * place.slot, place.phase ^ 1);
    LoadStep(block, operands, place.slot, step, m0, n0);
    place.Advance(block.stages);
  }
}
#endif

__device__ __forceinline__ void Produce(const Block& block,
                                        const Operands& operands,
                                        Schedule<SPLIT>& schedule) {
  Work work;
  Place place;
#pragma unroll 1
  while (schedule.Next(work)) LoadSteps(block, operands, work, place);
}

// The slot may be filled again: one thread each tells the blocks whose loads
// fill it here.
__device__ __forceinline__ void Release(const Block& block, int slot) {
  const int thread = threadIdx.x % 128;
  if (thread < CLUSTER_M + CLUSTER_N - 1) {
    const int next = block.rank_n + 1 + thread - CLUSTER_M;
    const int to = thread < CLUSTER_M
                       ? thread + block.rank_n * CLUSTER_M
                       : block.rank_m + next % CLUSTER_N * CLUSTER_M;
    BarrierArriveAt(block.empty + 8 * slot, to);
  }
}

__device__ __forceinline__ void PinSums(Sums& d) {
#pragma unroll
  for (int t = 0; t < M_TILES; ++t) Pin(d[t]);
}

__device__ __forceinline__ void MultiplySteps(const Block& block,
                                              const Work& work, int consumer,
                                              Place& place, Sums& d) {
  int previous = -1;
#pragma unroll 1
  for (int step = work.step; step < work.end; ++step) {
    BarrierWait(block.full + 8 * place.slot, place.phase);
    const uint32_t at = block.ring + place.slot * kStageBytes;
    const uint32_t rows =
        at + (TRANSPOSED ? kBytesA : 0) + consumer * M_TILES * 64 * 128;
    const uint32_t columns = at + (TRANSPOSED ? 0 : kBytesA);
    PinSums(d);
    ProductFence();
#pragma unroll
    for (int inner = 0; inner < kBk / 16; ++inner) {
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) {
        const int more = step > work.step || inner > 0;
        const uint32_t tile = rows + t * 64 * 128;
        if (TRANSPOSED) {
          MultiplyColumns<COLUMNS, 0, 1>(
              d[t], DescriptorOfColumns(tile, kBk, inner),
              DescriptorOfRows(columns, inner), more);
        } else {
          MultiplyColumns<COLUMNS, 1>(d[t], DescriptorOfRows(tile, inner),
                                      DescriptorOfColumns(columns, kBk, inner),
                                      more);
        }
      }
    }
    ProductCommit();
    // The products of the step before are done: its slot is free.
    ProductWait<1>();
    if (previous >= 0) Release(block, previous);
    previous = place.slot;
    place.Advance(block.stages);
  }
  ProductWait<0>();
  PinSums(d);
  if (previous >= 0) Release(block, previous);
}
#if SPLIT
// Whether sum i of product t is of a row of c; the others are nobody's.
__device__ __forceinline__ bool IsInside(int m, int m0, int consumer, int t,
                                         int i) {
  if (TRANSPOSED) return m0 + i / 4 * 8 < m;
  const int thread = threadIdx.x % 128;
  const int row = (consumer * M_TILES + t) * 64 + thread / 32 * 16 +
                  thread % 32 / 4 + i / 2 % 2 * 8;
  return m0 + row < m;
}

// The last to arrive sums all parts in order, so that results repeat, and
// returns true. The others leave theirs in memory; so does the last, unless it
// finds itself alone, and its own sums are the first of the order (of two
// either are).
__device__ __forceinline__ bool SumParts(const Block& block, const Work& work,
                                         const Schedule<SPLIT>& schedule,
                                         int consumer, float* partial,
                                         int* arrived, Sums& d) {
  __shared__ int is_alone[CONSUMERS], is_last[CONSUMERS];
  constexpr int kMine = M_TILES * kAccumulators;
  const int thread = threadIdx.x % 128;
  const int m0 = block.Row(work);
  const long long piece =
      ((long long)work.tile * kClusterSize + block.rank) * CONSUMERS + consumer;
  const auto sums_of = [&](int part) {
    const long long place =
        (schedule.PlaceOf(work, part) * kClusterSize + block.rank) * CONSUMERS +
        consumer;
    return partial + place * kMine * 128 + thread;
  };
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
        if (IsInside(block.m, m0, consumer, t, i))
          mine[(t * kAccumulators + i) * 128] = d[t][i];
    __threadfence();
    WarpgroupSync(1 + consumer);
    if (thread == 0)
      is_last[consumer] = atomicAdd(&arrived[piece], 1) == work.parts - 1;
    WarpgroupSync(1 + consumer);
    if (!is_last[consumer]) return false;
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
        if (IsInside(block.m, m0, consumer, t, i))
          d[t][i] = __ldcg(&from[(t * kAccumulators + i) * 128]) +
                    (begins ? -0.f : d[t][i]);
  }
  return true;
}
#endif

// Up to 64 rows of 64 columns of c, from `first` on of product t's: registers,
// swizzled shared memory, TMA. Rows of c are the products' rows, or columns.
__device__ __forceinline__ void StoreBox(const Block& block,
                                         const Operands& operands,
                                         const float* sums, uint32_t box,
                                         int consumer, int t, int first, int m0,
                                         int n0) {
  const int thread = threadIdx.x % 128;
  const int product = consumer * M_TILES + t;
  if constexpr (kUnalignedB) {
    // A warp writes and reads 16 rows of its own.
    __syncwarp();
    StoreMatrix(box, sums + first / 2);
    __syncwarp();
    StoreUnaligned(box, thread / 32 * 16, operands.matrix_c, block.m, block.n,
                   m0 + product * 64, n0 + first);
    return;
  }
  if (thread < kStorers) StoreWaitRead<kStoreSlots - 1>();
  WarpgroupSync(1 + consumer);
  if constexpr (TRANSPOSED) {
    StoreColumns<COLUMNS>(box, sums, first);
  } else {
    StoreMatrix(box, sums + first / 2);
  }
  FenceAsync();
  WarpgroupSync(1 + consumer);
  if (thread >= kStorers) return;
#if TRANSPOSED
  const int row = first + thread * 8;
  if (row < kBm && m0 + row < block.m)
    StoreTile(operands.c, box + thread * 1024, n0 + product * 64, m0 + row);
#else
  StoreTile(operands.c, box, n0 + first, m0 + product * 64);
#endif
  StoreCommit();
}

__device__ __forceinline__ void Consume(const Block& block,
                                        const Operands& operands,
                                        Schedule<SPLIT>& schedule,
                                        [[maybe_unused]] float* partial,
                                        [[maybe_unused]] int* arrived) {
  const int consumer = threadIdx.x / 128 - kProducers;
  const uint32_t store =
      block.ring + block.stages * kStageBytes + consumer * kStoreSlots * kBoxC;
  int store_slot = 0;
  Work work;
  Place place;
#pragma unroll 1
  while (schedule.Next(work)) {
    Sums d;
    MultiplySteps(block, work, consumer, place, d);
#if SPLIT
    if (work.parts > 1 &&
        !SumParts(block, work, schedule, consumer, partial, arrived, d))
      continue;
#endif
    const int m0 = block.Row(work), n0 = block.Column(work);
#pragma unroll
    for (int t = 0; t < M_TILES; ++t) {
#pragma unroll
      for (int first = 0; first < COLUMNS; first += 64) {
        StoreBox(block, operands, d[t], store + store_slot * kBoxC, consumer, t,
                 first, m0, n0);
        store_slot = (store_slot + 1) % kStoreSlots;
      }
    }
  }
  // What is still on its way from there is written before the next kernel runs.
  if (threadIdx.x % 128 < kStorers) StoreWaitAll();
}

// A producer that loads by itself needs more registers.
__device__ __forceinline__ void GiveProducerRegisters() {
  if constexpr (!UNALIGNED) {
    GiveRegisters<CONSUMERS, 1>();
  } else if constexpr (kProducers == 1 && CONSUMERS == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
  } else if constexpr (kProducers == 1 && CONSUMERS == 3) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
  }
}
__device__ __forceinline__ void TakeConsumerRegisters() {
  if constexpr (!UNALIGNED) {
    TakeRegisters<CONSUMERS, 1>();
  } else if constexpr (kProducers == 1 && CONSUMERS == 2) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
  } else if constexpr (kProducers == 1 && CONSUMERS == 3) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 144;");
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if CLUSTER_M * CLUSTER_N > 1
    __cluster_dims__(CLUSTER_M* CLUSTER_N, 1, 1)
#endif
        matmul(const __grid_constant__ TensorMap map_a,
               const __grid_constant__ TensorMap map_b,
               const __grid_constant__ TensorMap map_c, const uint16_t* a,
               const uint16_t* b, uint16_t* c, int m, int n, int k, int stages,
               int group, int parts, float* partial, int* arrived) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * kMaxStages];
  Block block;
  block.m = m, block.n = n, block.k = k, block.stages = stages;
  // The swizzle pattern repeats every 1024 bytes.
  block.ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  block.full = SharedAddress(barriers);
  block.empty = block.full + 8 * kMaxStages;
  block.rank = 0;
#if CLUSTER_M * CLUSTER_N > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block.rank));
#endif
  block.rank_m = block.rank % CLUSTER_M, block.rank_n = block.rank / CLUSTER_M;

  if (threadIdx.x == 0) {
    if (!kUnalignedA) PrefetchMap(&map_a);
    if (!kUnalignedB) PrefetchMap(&map_b);
    if (!kUnalignedB) PrefetchMap(&map_c);
    for (int i = 0; i < stages; ++i) {
      BarrierInit(block.full + 8 * i, kFillers);
      // Whoever fills a slot here waits for all who still read its copy there.
      BarrierInit(block.empty + 8 * i, CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));
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
  const Operands operands{&map_a, &map_b, &map_c, a, b, c};
  if (threadIdx.x < 128 * kProducers) {
    GiveProducerRegisters();
    if (UNALIGNED || threadIdx.x == 0) Produce(block, operands, schedule);
  } else {
    TakeConsumerRegisters();
    Consume(block, operands, schedule, partial, arrived);
  }
  // Nobody leaves while others may still write into its shared memory.
  if (kClusterSize > 1) ClusterSync();
}
