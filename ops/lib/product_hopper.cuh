#ifndef OPTRAIL_OPS_LIB_PRODUCT_HOPPER_CUH_
#define OPTRAIL_OPS_LIB_PRODUCT_HOPPER_CUH_

// y[m, n] = f(the sum over steps of x_step[m, 64] * w_step[64, n]) on Hopper:
// the persistent kernel of ops/matmul/matmul_hopper.cu for operators that say
// where the tiles of a step come from and what becomes of the sums before they
// are rounded.
//
// One warpgroup produces: its first thread has tiles of x and w loaded into a
// ring. The others consume, 64 rows each. While the sums of one tile are turned
// into results, the operands of the next one arrive.
//
// Loops over tiles and steps stay as they are (unroll 1): the compiler would peel
// steps off, which doubles the time that it takes and gains nothing.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   CONSUMERS 1|2|3 (64 rows each); BN 64|128|192|256; SPLIT 0|1 (the steps have
//   several parts, which are added up in order, so that results repeat);
//   CLUSTER 1|2|4, by default 1: the same by blocks of a cluster, whose sums meet
//   in shared memory. A block has one tile then, and BN is a multiple of
//   64 * CLUSTER. Kernels say OPTRAIL_CLUSTER after their launch bounds.
//   TRANSPOSED_X, TRANSPOSED_W 0|1, by default 0: x lies as [64][m], w as [n][64].
// What does not change the code of a step comes as an argument (Walk), so that
// one compilation serves all configs that differ in these alone.

#include "hopper.cuh"

#ifndef TRANSPOSED_X
#define TRANSPOSED_X 0
#endif
#ifndef TRANSPOSED_W
#define TRANSPOSED_W 0
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif
#if CLUSTER > 1
#define OPTRAIL_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define OPTRAIL_CLUSTER
#endif

constexpr int kBm = 64 * CONSUMERS;
constexpr int kBk = 64;  // 128 bytes: one row of the swizzle
constexpr int kChunks = BN / 64;
constexpr int kBytesX = kBm * kBk * 2;
constexpr int kStageBytes = kBytesX + kBk * BN * 2;
constexpr int kBoxY = 64 * 64 * 2;  // what one store takes
constexpr int kStoreSlots = 2;      // per consumer
constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr int kMaxStages = 12;

// How many tiles are in flight, at most kMaxStages; rows of tiles that are
// walked together; parts of the steps, where there is more than one.
struct Walk {
  int stages, group, parts;
};

// A tile of y and some of its steps.
struct Work {
  int m0, n0, tile, part, begin, end;
};

struct Schedule {
  int tiles_m, tiles_n, steps, group, parts;

  __device__ Schedule(int m, int n, int steps, const Walk& walk)
      : tiles_m((m + kBm - 1) / kBm),
        tiles_n((n + BN - 1) / BN),
        steps(steps),
        group(walk.group),
        parts(SPLIT ? walk.parts : CLUSTER) {}
  __device__ int items() const { return tiles_m * tiles_n * parts; }
  // `group` rows of tiles are walked together, column by column, so that what
  // runs at once reads few different rows and columns.
  __device__ Work At(int item) const {
    Work work;
    work.tile = item / parts;
    work.part = item % parts;
    const int in_group = group * tiles_n;
    const int first_m = work.tile / in_group * group;
    const int rows = min(tiles_m - first_m, group);
    work.m0 = (first_m + work.tile % in_group % rows) * kBm;
    work.n0 = work.tile % in_group / rows * BN;
    work.begin = (int)((long long)steps * work.part / parts);
    work.end = (int)((long long)steps * (work.part + 1) / parts);
    return work;
  }
};

#if SPLIT
// Every part leaves its sums of 64 rows in memory; the last one to arrive adds
// them all up, in order, and returns true. `partial` has a piece for each
// consumer of each tile and part; a thread has two rows, eight apart, and those
// beyond m are nobody's.
__device__ __forceinline__ bool AddParts(float (&d)[BN / 2], const Work& work,
                                         const Schedule& schedule, int consumer,
                                         int m, float* partial, int* arrived) {
  __shared__ int is_last[CONSUMERS];
  const int thread = threadIdx.x % 128;
  const long long pieces =
      (long long)schedule.tiles_m * schedule.tiles_n * CONSUMERS;
  const long long piece = (long long)work.tile * CONSUMERS + consumer;
  const int row = work.m0 + consumer * 64 + thread / 32 * 16 + thread % 32 / 4;
  const auto part = [&](int i) {
    return partial + (piece + i * pieces) * (BN / 2) * 128 + thread;
  };
  float* const mine = part(work.part);
#pragma unroll
  for (int i = 0; i < BN / 2; ++i) {
    if (row + i / 2 % 2 * 8 < m) mine[i * 128] = d[i];
  }
  __threadfence();
  WarpgroupSync(1 + consumer);
  if (thread == 0) {
    const int before = atomicAdd(&arrived[piece], 1);
    is_last[consumer] = before == schedule.parts - 1;
    if (before == schedule.parts - 1) arrived[piece] = 0;
  }
  WarpgroupSync(1 + consumer);
  if (!is_last[consumer]) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < BN / 2; ++i) d[i] = 0;
  for (int p = 0; p < schedule.parts; ++p) {
    const float* const from = part(p);
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) {
      if (row + i / 2 % 2 * 8 < m) d[i] += __ldcg(&from[i * 128]);
    }
  }
  return true;
}
#endif

#if CLUSTER > 1
// Of the columns of a tile each block of the cluster finishes as many: it gets
// the others' sums of them and adds all up, in order of parts. `at`: shared
// memory that nobody needs any more, kBm * BN floats. Blocks meet twice, the
// producer's threads, too.
constexpr int kShare = BN / 2 / CLUSTER;  // of a thread's sums
constexpr int kSharedChunks = kChunks / CLUSTER;
static_assert(kSharedChunks * CLUSTER == kChunks, "BN: 64 * CLUSTER times n");

__device__ __forceinline__ void AddShares(float (&d)[BN / 2], int part,
                                          int consumer, uint32_t at) {
  // Of four sums of all threads of a consumer.
  const auto piece = [&](int from, int i) {
    return at + ((from * CONSUMERS + consumer) * kShare + i) * 512 +
           threadIdx.x % 128 * 16;
  };
  ClusterSync();
#pragma unroll
  for (int to = 0; to < CLUSTER; ++to) {
    if (to == part) continue;
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      const float* const v = d + to * kShare + i;
      asm volatile(
          "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
          "st.shared::cluster.v4.f32 [remote], {%2, %3, %4, %5};}" ::"r"(
              piece(part, i)),
          "r"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
          : "memory");
    }
  }
  ClusterSync();
#pragma unroll
  for (int mine = 0; mine < CLUSTER; ++mine) {
    if (mine != part) continue;
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      float sum[4] = {};
#pragma unroll
      for (int from = 0; from < CLUSTER; ++from) {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) v[j] = d[mine * kShare + i + j];
        if (from != mine) {
          asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                       : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                       : "r"(piece(from, i))
                       : "memory");
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += v[j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) d[mine * kShare + i + j] = sum[j];
    }
  }
}
#endif

// `load(to, barrier, work, step)` has the tiles of a step loaded, kStageBytes
// in all: x to `to` (transposed, 64 of its columns after 64), 64 columns of w
// after 64 behind it. `finish(column, sums)` turns four sums into results: of
// the columns `column` and the next one, in two rows. `store(box, column, row)`
// has 64 x 64 of them written.
template <class Store, class Load, class Finish>
__device__ __forceinline__ void Product(const Store& store_tile, int m, int n,
                                        int steps, Walk walk,
                                        [[maybe_unused]] float* partial,
                                        [[maybe_unused]] int* arrived,
                                        const Load& load,
                                        const Finish& finish) {
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[2 * kMaxStages];
  const uint32_t ring = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t full = SharedAddress(barriers), empty = full + 8 * kMaxStages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < walk.stages; ++i) {
      BarrierInit(full + 8 * i, 1);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    BarrierInitDone();
  }
  __syncthreads();
  const Schedule schedule(m, n, steps, walk);
  const int warpgroup = threadIdx.x / 128;
  int slot = 0, phase = 0;
  const auto advance = [&] {
    if (++slot == walk.stages) slot = 0, phase ^= 1;
  };

  if (warpgroup == 0) {
    GiveRegisters<CONSUMERS, 1>();
    if (threadIdx.x == 0) {
#pragma unroll 1
      for (int item = blockIdx.x; item < schedule.items(); item += gridDim.x) {
        const Work work = schedule.At(item);
#pragma unroll 1
        for (int step = work.begin; step < work.end; ++step) {
          BarrierWait(empty + 8 * slot, phase ^ 1);
          BarrierExpect(full + 8 * slot, kStageBytes);
          load(ring + slot * kStageBytes, full + 8 * slot, work, step);
          advance();
        }
      }
    }
#if CLUSTER > 1
    // As the consumers do.
    __syncwarp();
    ClusterSync();
    ClusterSync();
#endif
    return;
  }

  TakeRegisters<CONSUMERS, 1>();
  const int consumer = warpgroup - 1;
  const int thread = threadIdx.x % 128;
  const int column = thread % 4 * 2;  // of each 8
  const uint32_t store =
      ring + walk.stages * kStageBytes + consumer * kStoreSlots * kBoxY;
  int store_slot = 0;
#pragma unroll 1
  for (int item = blockIdx.x; item < schedule.items(); item += gridDim.x) {
    const Work work = schedule.At(item);
    float d[BN / 2];
    int previous = -1;
#pragma unroll 1
    for (int step = work.begin; step < work.end; ++step) {
      BarrierWait(full + 8 * slot, phase);
      const uint32_t at_x = ring + slot * kStageBytes + consumer * 64 * 128;
      const uint32_t at_w = ring + slot * kStageBytes + kBytesX;
      Pin(d);
      ProductFence();
#pragma unroll
      for (int at = 0; at < kBk / 16; ++at) {
        const uint64_t x = TRANSPOSED_X ? DescriptorOfColumns(at_x, kBk, at)
                                        : DescriptorOfRows(at_x, at);
        const uint64_t w = TRANSPOSED_W ? DescriptorOfRows(at_w, at)
                                        : DescriptorOfColumns(at_w, kBk, at);
        Multiply<BN, !TRANSPOSED_W, TRANSPOSED_X>(
            d, x, w, step > work.begin || at > 0);
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
#if SPLIT
    if (!AddParts(d, work, schedule, consumer, m, partial, arrived)) continue;
#endif
#if CLUSTER > 1
    AddShares(d, work.part, consumer, ring);
#endif

      // 64 rows of 64 columns at a time: registers, shared memory, memory.
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#if CLUSTER > 1
      if (chunk / kSharedChunks != work.part) continue;
#endif
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        finish(work.n0 + chunk * 64 + i * 8 + column, d + chunk * 32 + i * 4);
      }
      const uint32_t box = store + store_slot * kBoxY;
      if (thread == 0) StoreWaitRead<kStoreSlots - 1>();
      WarpgroupSync(1 + consumer);
      StoreMatrix(box, d + chunk * 32);
      FenceAsync();
      WarpgroupSync(1 + consumer);
      if (thread == 0) {
        store_tile(box, work.n0 + chunk * 64, work.m0 + consumer * 64);
        StoreCommit();
      }
      store_slot ^= 1;
    }
  }
  if (thread == 0) StoreWaitAll();
}

// The same of one matrix, as the copy engine writes it.
template <class Load, class Finish>
__device__ __forceinline__ void Product(const TensorMap* map_y, int m, int n,
                                        int steps, Walk walk, float* partial,
                                        int* arrived, const Load& load,
                                        const Finish& finish) {
  const auto store = [&](uint32_t box, int column, int row) {
    StoreTile(map_y, box, column, row);
  };
  Product(store, m, n, steps, walk, partial, arrived, load, finish);
}

#endif  // OPTRAIL_OPS_LIB_PRODUCT_HOPPER_CUH_
