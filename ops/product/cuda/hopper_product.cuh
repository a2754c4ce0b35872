#ifndef OPTRAIL_OPS_PRODUCT_CUDA_HOPPER_PRODUCT_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_HOPPER_PRODUCT_CUH_

// Matrix products c[m, n] = f(a[m, k] * b[k, n]) on Hopper: tensor cores
// (wgmma) fed by the bulk copy engine (TMA) through a ring of barriers, f32
// accumulation, persistent blocks.
//
// Producer warpgroups load tiles of a and b into a ring of `stages` slots. The
// others consume: each computes M_TILES products of 64 rows and COLUMNS
// columns. Results leave through shared memory and TMA while the producer
// already loads the next tile. A kernel combines the main loop with three
// parts:
//
//   source    loads the tiles of a step (matrices.cuh; convolution_hopper.cu)
//   epilogue  turns sums into results (epilogue.cuh)
//   result    stores 64 x 64 results (matrices.cuh)
//
//   extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
//       product(..., Walk walk, float* partial, int* arrived) {
//     Product(source, epilogue, result, m, n, steps, walk, partial, arrived);
//   }
//
// Compiled at run time with these macros, beside hopper.cuh's:
//   CONSUMERS 1|2|3   warpgroups that multiply
//   M_TILES 1|2       products of each of them
//   COLUMNS           a multiple of 8 up to 256
//   TRANSPOSED 0|1    rows of products are rows of c, and COLUMNS is a multiple
//                     of 64; or c' = b' a' is computed: they are columns of c
//   and, 0 or 1 by default:
//   TRANSPOSED_A, TRANSPOSED_B  a is stored as [k][m], b as [n][k]
//   UNALIGNED         a sum: rows of a (1), of b (2), of c (4) are no multiples
//                     of 16 bytes (unaligned.cuh)
//   CLUSTER_M, CLUSTER_N 1|2|4  blocks that load tiles for each other
//   SHARES 1|2|4      blocks of a cluster that share the steps of one tile;
//                     their sums meet in shared memory (shared_sums.cuh)
//   SPLIT 0|1         k has several parts whose sums meet in memory
// What does not change the code of a step is an argument (Walk): one
// compilation serves all configs that differ in these alone.
//
// Loops over tiles and steps are not unrolled: the compiler would peel steps
// off, which doubles the time that it takes and gains nothing.

#include "cluster.cuh"
#include "columns.cuh"
#include "hopper.cuh"
#include "schedule.cuh"

#ifndef TRANSPOSED_A
#define TRANSPOSED_A 0
#endif
#ifndef TRANSPOSED_B
#define TRANSPOSED_B 0
#endif
#ifndef UNALIGNED
#define UNALIGNED 0
#endif
// Operands that the engine cannot load.
#define UNALIGNED_LOADS (UNALIGNED & 3)
#ifndef CLUSTER_M
#define CLUSTER_M 1
#endif
#ifndef CLUSTER_N
#define CLUSTER_N 1
#endif
#ifndef SHARES
#define SHARES 1
#endif

#if CLUSTER_M * CLUSTER_N * SHARES > 1
#define OPTRAIL_CLUSTER __cluster_dims__(CLUSTER_M* CLUSTER_N* SHARES, 1, 1)
#else
#define OPTRAIL_CLUSTER
#endif

constexpr int kRows = 64 * CONSUMERS * M_TILES;  // of a block's products
constexpr int kBm = TRANSPOSED ? COLUMNS : kRows;
constexpr int kBn = TRANSPOSED ? kRows : COLUMNS;
constexpr int kBk = 64;  // 128 bytes: one row of the swizzle
constexpr int kChunks = kBn / 64;
constexpr int kBytesA = kBm * kBk * 2;
constexpr int kBytesB = kBk * kBn * 2;
constexpr int kStageBytes = kBytesA + kBytesB;
constexpr int kBoxC = 64 * 64 * 2;  // results on their way out
constexpr bool kUnalignedA = UNALIGNED & 1, kUnalignedB = UNALIGNED & 2;
constexpr bool kUnalignedC = UNALIGNED & 4;
// Boxes of each consumer: the engine writes one while the other one is filled.
constexpr int kStoreSlots = kUnalignedC ? 1 : 2;
// Threads that store a box: one, or each one 8 rows of it.
constexpr int kStorers = TRANSPOSED ? 8 : 1;
// Producer warpgroups: two load unaligned rows where registers allow it.
constexpr int kProducers =
    UNALIGNED_LOADS &&
            128 * (CONSUMERS + 2) * (M_TILES * COLUMNS / 2 + 40) <= 65536
        ? 2
        : 1;
// Arrivals that fill a slot: the thread that starts the engine, and the warps
// that load by themselves.
constexpr int kFillers =
    (UNALIGNED_LOADS != 3) + (UNALIGNED_LOADS ? 4 * kProducers : 0);
constexpr int kThreads = 128 * (CONSUMERS + kProducers);
constexpr int kLoaders = CLUSTER_M * CLUSTER_N;  // blocks that load together
constexpr int kClusterSize = kLoaders * SHARES;
constexpr int kAccumulators = COLUMNS / 2;
constexpr int kMaxStages = 16;

// The operands of wgmma: the first has the products' rows. Whether their rows
// in shared memory run across the sum's direction.
constexpr bool kFirstAcross = TRANSPOSED ? !TRANSPOSED_B : TRANSPOSED_A;
constexpr bool kSecondAcross = TRANSPOSED ? TRANSPOSED_A : !TRANSPOSED_B;

static_assert(!UNALIGNED || (!TRANSPOSED && kClusterSize == 1));
static_assert(!UNALIGNED_LOADS || (!TRANSPOSED_A && !TRANSPOSED_B));
static_assert(!TRANSPOSED || !TRANSPOSED_A);
static_assert(TRANSPOSED || COLUMNS % 64 == 0);
static_assert(SHARES == 1 || (kLoaders == 1 && !TRANSPOSED && !SPLIT));

typedef float Sums[M_TILES][kAccumulators];

// How many tiles are in flight, at most kMaxStages; rows of tiles that are
// walked together; parts of the sum over k (schedule.cuh).
struct Walk {
  int stages, group, parts;
};

// The first row and column of a tile of c.
struct Tile {
  int m0, n0;
};

// A slot of the ring: the barrier that its loads complete, and its two tiles.
struct Slot {
  uint32_t barrier, a, b;
};

// All threads of a block know this.
struct Block {
  int m, stages;
  int rank, rank_m, rank_n;  // in the cluster
  uint32_t ring, full, empty, sums;

  __device__ Tile TileOf(const Work& work) const {
    return {(work.row * CLUSTER_M + rank_m) * kBm,
            (work.column * CLUSTER_N + rank_n) * kBn};
  }
  __device__ Slot SlotAt(int index) const {
    const uint32_t a = ring + index * kStageBytes;
    return {full + 8 * index, a, a + kBytesA};
  }
  // Shared memory behind the ring: the boxes of all consumers, then what
  // unaligned rows are fetched into.
  __device__ uint32_t Boxes() const { return ring + stages * kStageBytes; }
  __device__ uint32_t Fetched() const {
    return Boxes() + CONSUMERS * kStoreSlots * kBoxC;
  }
};

// The place in the ring.
struct Place {
  int slot = 0, phase = 0;
  __device__ void Advance(int stages) {
    if (++slot == stages) slot = 0, phase ^= 1;
  }
};

// The next tile and the steps of it that this block computes; false at the end.
__device__ __forceinline__ bool NextWork(const Block& block,
                                         Schedule<SPLIT>& schedule,
                                         Work& work) {
  if (!schedule.Next(work)) return false;
  if constexpr (SHARES > 1) {
    const int steps = work.end;
    work.step = (int)((long long)steps * block.rank / SHARES);
    work.end = (int)((long long)steps * (block.rank + 1) / SHARES);
  }
  return true;
}

#if !UNALIGNED_LOADS
// Loads the steps of one tile by one thread. `tile` is what source.At()
// returns: Load(slot, step) starts the loads of kStageBytes in all.
template <class TileSource>
__device__ __forceinline__ void LoadSteps(const Block& block,
                                          const TileSource& tile,
                                          const Work& work, Place& place) {
#pragma unroll 1
  for (int step = work.step; step < work.end; ++step) {
    const Slot slot = block.SlotAt(place.slot);
    BarrierWait(block.empty + 8 * place.slot, place.phase ^ 1);
    BarrierExpect(slot.barrier, kStageBytes);
    tile.Load(slot, step);
    place.Advance(block.stages);
  }
}
#endif

// The slot may be filled again: one thread each tells the blocks whose loads
// fill it here.
__device__ __forceinline__ void Release(const Block& block, int slot) {
  const int thread = threadIdx.x % 128;
  if constexpr (kLoaders == 1) {
    if (thread == 0) BarrierArrive(block.empty + 8 * slot);
  } else if (thread < CLUSTER_M + CLUSTER_N - 1) {
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

// A descriptor of 16 of the 64 steps of a tile.
template <bool kAcross>
__device__ __forceinline__ uint64_t DescriptorOf(uint32_t tile, int inner) {
  return kAcross ? DescriptorOfColumns(tile, kBk, inner)
                 : DescriptorOfRows(tile, inner);
}

__device__ __forceinline__ void MultiplySteps(const Block& block,
                                              const Work& work, int consumer,
                                              Place& place, Sums& d) {
  int previous = -1;
#pragma unroll 1
  for (int step = work.step; step < work.end; ++step) {
    BarrierWait(block.full + 8 * place.slot, place.phase);
    const Slot slot = block.SlotAt(place.slot);
    const uint32_t rows =
        (TRANSPOSED ? slot.b : slot.a) + consumer * M_TILES * 64 * 128;
    const uint32_t columns = TRANSPOSED ? slot.a : slot.b;
    PinSums(d);
    ProductFence();
#pragma unroll
    for (int inner = 0; inner < kBk / 16; ++inner) {
#pragma unroll
      for (int t = 0; t < M_TILES; ++t) {
        MultiplyColumns<COLUMNS, kSecondAcross, kFirstAcross>(
            d[t], DescriptorOf<kFirstAcross>(rows + t * 64 * 128, inner),
            DescriptorOf<kSecondAcross>(columns, inner),
            step > work.step || inner > 0);
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

// Applies the epilogue to 64 columns of a product's sums from `first` on. A
// thread has sums of two adjacent columns of c, or, transposed, of two columns
// eight apart.
template <class Epilogue>
__device__ __forceinline__ void Finish(const Epilogue& epilogue, float* sums,
                                       int first, const Tile& tile,
                                       int product) {
  typename Epilogue::Column columns[2];
  const int lane = threadIdx.x % 32;
  if constexpr (TRANSPOSED) {
    const int column =
        tile.n0 + product * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    epilogue.Load(column, columns[0]);
    epilogue.Load(column + 8, columns[1]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (first + i * 8 >= COLUMNS) break;
    float* const of = sums + (first + i * 8) / 2;
    if constexpr (!TRANSPOSED)
      epilogue.LoadPair(tile.n0 + first + i * 8 + lane % 4 * 2, columns);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      of[j] = epilogue.Finish(of[j], columns[TRANSPOSED ? j / 2 : j % 2]);
  }
}

// Up to 64 rows of 64 columns of c, from `first` on of product t's: registers,
// swizzled shared memory, memory. Rows of c are the products' rows, or columns.
template <class Result>
__device__ __forceinline__ void StoreBox(const Block& block,
                                         const Result& result,
                                         const float* sums, uint32_t box,
                                         int consumer, int product, int first,
                                         const Tile& tile) {
  const int thread = threadIdx.x % 128;
  if constexpr (kUnalignedC) {
    // A warp writes and reads 16 rows of its own.
    __syncwarp();
    StoreMatrix(box, sums + first / 2);
    __syncwarp();
    result.StoreRows(box, thread / 32 * 16, tile.m0 + product * 64,
                     tile.n0 + first);
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
  if constexpr (TRANSPOSED) {
    const int row = first + thread * 8;
    if (row < kBm && tile.m0 + row < block.m)
      result.Store(box + thread * 1024, tile.m0 + row, tile.n0 + product * 64);
  } else {
    result.Store(box, tile.m0 + product * 64, tile.n0 + first);
  }
  StoreCommit();
}

#include "shared_sums.cuh"

template <class Epilogue, class Result>
__device__ __forceinline__ void Consume(const Block& block,
                                        const Epilogue& epilogue,
                                        const Result& result,
                                        Schedule<SPLIT>& schedule,
                                        [[maybe_unused]] float* partial,
                                        [[maybe_unused]] int* arrived) {
  const int consumer = threadIdx.x / 128 - kProducers;
  const uint32_t boxes = block.Boxes() + consumer * kStoreSlots * kBoxC;
  int store_slot = 0;
  Work work;
  Place place;
#pragma unroll 1
  while (NextWork(block, schedule, work)) {
    Sums d;
    MultiplySteps(block, work, consumer, place, d);
#if SPLIT
    if (work.parts > 1 &&
        !SumParts(block, work, schedule, consumer, partial, arrived, d))
      continue;
#endif
#if SHARES > 1
    SumShares(block, consumer, d);
#endif
    const Tile tile = block.TileOf(work);
#pragma unroll
    for (int t = 0; t < M_TILES; ++t) {
#pragma unroll
      for (int first = 0; first < COLUMNS; first += 64) {
        if (SHARES > 1 && first / (COLUMNS / SHARES) != block.rank) continue;
        const int product = consumer * M_TILES + t;
        Finish(epilogue, d[t], first, tile, product);
        StoreBox(block, result, d[t], boxes + store_slot * kBoxC, consumer,
                 product, first, tile);
        store_slot = (store_slot + 1) % kStoreSlots;
      }
    }
  }
  // Results that are still in flight are written before the next kernel runs.
  if (threadIdx.x % 128 < kStorers) StoreWaitAll();
}

// A producer that loads by itself needs more registers.
__device__ __forceinline__ void GiveProducerRegisters() {
  if constexpr (!UNALIGNED_LOADS) {
    GiveRegisters<CONSUMERS, 1>();
  } else if constexpr (kProducers == 1 && CONSUMERS >= 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
  }
}
__device__ __forceinline__ void TakeConsumerRegisters() {
  if constexpr (!UNALIGNED_LOADS) {
    TakeRegisters<CONSUMERS, 1>();
  } else if constexpr (kProducers == 1 && CONSUMERS == 2) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
  } else if constexpr (kProducers == 1 && CONSUMERS == 3) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 144;");
  }
}

// The product of m x n results in `steps` steps of 64. `partial` and `arrived`
// are the workspace of SPLIT.
template <class Source, class Epilogue, class Result>
__device__ __forceinline__ void Product(const Source& source,
                                        const Epilogue& epilogue,
                                        const Result& result, int m, int n,
                                        int steps, const Walk& walk,
                                        float* partial, int* arrived) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * kMaxStages + 1];
  Block block;
  block.m = m, block.stages = walk.stages;
  // The swizzle pattern repeats every 1024 bytes.
  block.ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  block.full = SharedAddress(barriers);
  block.empty = block.full + 8 * kMaxStages;
  block.sums = block.empty + 8 * kMaxStages;
  block.rank = 0;
#if CLUSTER_M * CLUSTER_N * SHARES > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block.rank));
#endif
  block.rank_m = SHARES > 1 ? 0 : block.rank % CLUSTER_M;
  block.rank_n = SHARES > 1 ? 0 : block.rank / CLUSTER_M;

  if (threadIdx.x == 0) {
    for (int i = 0; i < walk.stages; ++i) {
      BarrierInit(block.full + 8 * i, kFillers);
      // Whoever fills a slot here waits for all who still read its copy there.
      BarrierInit(block.empty + 8 * i, CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));
    }
#if SHARES > 1
    BarrierInit(block.sums, 1);
    BarrierExpect(block.sums, kBytesOfShares);
#endif
    BarrierInitDone();
  }
  if (kLoaders > 1) {
    ClusterSyncRelaxed();
  } else {
    __syncthreads();
  }
  const int tiles_m = (m + kBm * CLUSTER_M - 1) / (kBm * CLUSTER_M);
  const int tiles_n = (n + kBn * CLUSTER_N - 1) / (kBn * CLUSTER_N);
  Schedule<SPLIT> schedule(tiles_m, tiles_n, steps, walk.group, walk.parts,
                           blockIdx.x / kClusterSize, gridDim.x / kClusterSize);
  if (threadIdx.x < 128 * kProducers) {
    GiveProducerRegisters();
    if (UNALIGNED_LOADS || threadIdx.x == 0) {
      Work work;
      Place place;
#pragma unroll 1
      while (NextWork(block, schedule, work))
        LoadSteps(block, source.At(block, block.TileOf(work)), work, place);
    }
#if SHARES > 1
    // The consumers meet before they exchange sums.
    __syncwarp();
    ClusterSyncRelaxed();
#endif
  } else {
    TakeConsumerRegisters();
    Consume(block, epilogue, result, schedule, partial, arrived);
  }
  // Nobody leaves while others may still write into its shared memory. Without
  // the release, what they tell its barriers last may come after the wait.
  if (kLoaders > 1) ClusterSync();
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_HOPPER_PRODUCT_CUH_
