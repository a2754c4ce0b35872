#ifndef OPTRAIL_OPS_LIB_HOPPER_CUH_
#define OPTRAIL_OPS_LIB_HOPPER_CUH_

// What kernels on Hopper share (sm_90a): products of a warpgroup (wgmma), the
// bulk copy engine (TMA), barriers, clusters, registers that move between
// warpgroups.
//
// Compiled at run time with INPUT "bf16" or "f16" as a macro. Tiles in shared
// memory have rows of 128 bytes, 64 elements, and the 128-byte swizzle; they
// begin at multiples of 1024 bytes.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned short uint16_t;

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

// Two floats as 16-bit elements, the first in the lower half.
__device__ __forceinline__ uint32_t Pack(float low, float high) {
  uint32_t packed;
  asm("cvt.rn." INPUT "x2.f32 %0, %1, %2;"
      : "=r"(packed)
      : "f"(high), "f"(low));
  return packed;
}

// Barriers of shared memory.

__device__ __forceinline__ void BarrierInit(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(count));
}
// What was initialised is visible to the copy engine.
__device__ __forceinline__ void BarrierInitDone() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
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
// Arrives at the barrier at the same place in block `rank` of the cluster.
__device__ __forceinline__ void BarrierArriveAt(uint32_t barrier, int rank) {
  asm volatile(
      "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// Of one warpgroup; `id` from 1.
__device__ __forceinline__ void WarpgroupSync(int id) {
  asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
}

// Of all threads of a cluster; what they wrote to shared memory is visible then.
__device__ __forceinline__ void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// The bulk copy engine: boxes of tensors of two and three dimensions.

__device__ __forceinline__ void PrefetchMap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void LoadTile(uint32_t to, const TensorMap* map,
                                         uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void LoadTile(uint32_t to, const TensorMap* map,
                                         uint32_t barrier, int x, int y,
                                         int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}
// To the same place in all blocks of the cluster that `mask` names.
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
__device__ __forceinline__ void StoreTile(const TensorMap* map, uint32_t from,
                                          int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, "
      "%3, %4}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void StoreCommit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until at most kPending groups of stores still read shared memory.
template <int kPending>
__device__ __forceinline__ void StoreWaitRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void StoreWaitAll() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// Between ordinary stores to shared memory and what the copy engine reads.
__device__ __forceinline__ void FenceAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// 64 rows of 64 columns of sums, as a product leaves them in registers, rounded
// and written to a tile.
__device__ __forceinline__ void StoreMatrix(uint32_t tile, const float* sums) {
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const int column16 = pair * 2 + lane / 16;  // of 8 elements
    const float* const v = sums + pair * 8;
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, "
        "%4};" ::"r"(tile + row * 128 + ((column16 ^ (row % 8)) * 16)),
        "r"(Pack(v[0], v[1])), "r"(Pack(v[2], v[3])), "r"(Pack(v[4], v[5])),
        "r"(Pack(v[6], v[7]))
        : "memory");
  }
}

// Products of a warpgroup: 64 rows, kColumns columns, 16 deep.

// A matrix descriptor: 128-byte swizzle (PTX ISA, "Asynchronous warpgroup level
// matrix shared memory layout"). Offsets in bytes.
__device__ __forceinline__ uint64_t Descriptor(uint32_t address,
                                               uint32_t leading,
                                               uint32_t stride) {
  return (uint64_t)((address & 0x3ffff) >> 4) |
         ((uint64_t)(leading >> 4) << 16) | ((uint64_t)(stride >> 4) << 32) |
         (1ull << 62);
}
// Rows run along the depth: a, or b as [columns][depth]; `at` of 16 of the 64.
__device__ __forceinline__ uint64_t DescriptorOfRows(uint32_t tile, int at) {
  return Descriptor(tile + at * 32, 16, 1024);
}
// Rows run along the columns: b as [depth][columns], one tile of `depth` rows
// for each 64 columns; `at` of 16 rows.
__device__ __forceinline__ uint64_t DescriptorOfColumns(uint32_t tile,
                                                        int depth, int at) {
  return Descriptor(tile + at * 16 * 128, depth * 128, 1024);
}

#define OPTRAIL_D4(i) \
  "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OPTRAIL_D8(i) OPTRAIL_D4(i), OPTRAIL_D4((i) + 4)
#define OPTRAIL_D16(i) OPTRAIL_D8(i), OPTRAIL_D8((i) + 8)
#define OPTRAIL_D32(i) OPTRAIL_D16(i), OPTRAIL_D16((i) + 16)
#define OPTRAIL_R4 "%0,%1,%2,%3"
#define OPTRAIL_R8 OPTRAIL_R4 ",%4,%5,%6,%7"
#define OPTRAIL_R16 OPTRAIL_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define OPTRAIL_R32                                                         \
  OPTRAIL_R16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"   \
  "%30,%31"
#define OPTRAIL_R64                                                         \
  OPTRAIL_R32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"   \
  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define OPTRAIL_R96                                                         \
  OPTRAIL_R64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,"   \
  "%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define OPTRAIL_R128                                                        \
  OPTRAIL_R96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"   \
  "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,"  \
  "%122,%123,%124,%125,%126,%127"

// d (+)= a * b. `kRowsOfA`: a's rows run along its 64 rows, that is, it lies
// transposed. `kColumnsOfB`: b's rows run along the columns.
#define OPTRAIL_WGMMA(columns, registers, a, b, flag, transposed, ...)   \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " flag                     \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #columns         \
               "k16.f32." INPUT "." INPUT " {" registers "}, " a ", " b  \
               ", p, 1, 1, " transposed ";}"                             \
               : __VA_ARGS__)

template <int kColumns, int kColumnsOfB, int kRowsOfA = 0>
__device__ __forceinline__ void Multiply(float (&d)[kColumns / 2], uint64_t a,
                                         uint64_t b, int accumulate) {
#define OPTRAIL_FROM \
  "l"(a), "l"(b), "r"(accumulate), "n"(kRowsOfA), "n"(kColumnsOfB)
  if constexpr (kColumns == 8) {
    OPTRAIL_WGMMA(8, OPTRAIL_R4, "%4", "%5", "%6", "%7, %8",
                  OPTRAIL_D4(0)
                  : OPTRAIL_FROM);
  } else if constexpr (kColumns == 16) {
    OPTRAIL_WGMMA(16, OPTRAIL_R8, "%8", "%9", "%10", "%11, %12",
                  OPTRAIL_D8(0)
                  : OPTRAIL_FROM);
  } else if constexpr (kColumns == 32) {
    OPTRAIL_WGMMA(32, OPTRAIL_R16, "%16", "%17", "%18", "%19, %20",
                  OPTRAIL_D16(0)
                  : OPTRAIL_FROM);
  } else if constexpr (kColumns == 64) {
    OPTRAIL_WGMMA(64, OPTRAIL_R32, "%32", "%33", "%34", "%35, %36",
                  OPTRAIL_D32(0)
                  : OPTRAIL_FROM);
  } else if constexpr (kColumns == 128) {
    OPTRAIL_WGMMA(128, OPTRAIL_R64, "%64", "%65", "%66", "%67, %68",
                  OPTRAIL_D32(0), OPTRAIL_D32(32)
                  : OPTRAIL_FROM);
  } else if constexpr (kColumns == 192) {
    OPTRAIL_WGMMA(192, OPTRAIL_R96, "%96", "%97", "%98", "%99, %100",
                  OPTRAIL_D32(0), OPTRAIL_D32(32), OPTRAIL_D32(64)
                  : OPTRAIL_FROM);
  } else {
    static_assert(kColumns == 256, "8, 16, 32, 64, 128, 192 or 256 columns");
    OPTRAIL_WGMMA(256, OPTRAIL_R128, "%128", "%129", "%130", "%131, %132",
                  OPTRAIL_D32(0), OPTRAIL_D32(32), OPTRAIL_D32(64),
                  OPTRAIL_D32(96)
                  : OPTRAIL_FROM);
  }
#undef OPTRAIL_FROM
}

// The same with a in registers: the 16 columns of it as a product leaves them.
template <int kColumns, int kColumnsOfB>
__device__ __forceinline__ void Multiply(float (&d)[kColumns / 2],
                                         const uint32_t* a, uint64_t b,
                                         int accumulate) {
#define OPTRAIL_FROM                                                       \
  "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), \
      "n"(kColumnsOfB)
  if constexpr (kColumns == 64) {
    OPTRAIL_WGMMA(64, OPTRAIL_R32, "{%32,%33,%34,%35}", "%36", "%37", "%38",
                  OPTRAIL_D32(0)
                  : OPTRAIL_FROM);
  } else {
    static_assert(kColumns == 128, "64 or 128 columns");
    OPTRAIL_WGMMA(128, OPTRAIL_R64, "{%64,%65,%66,%67}", "%68", "%69", "%70",
                  OPTRAIL_D32(0), OPTRAIL_D32(32)
                  : OPTRAIL_FROM);
  }
#undef OPTRAIL_FROM
}

// The compiler must not move accumulators across asynchronous products.
template <int kCount>
__device__ __forceinline__ void Pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void Pin(uint32_t (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
__device__ __forceinline__ void ProductFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void ProductCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most kPending groups of products run.
template <int kPending>
__device__ __forceinline__ void ProductWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Registers move from the one warpgroup that loads to those that compute.
// CONSUMERS of them, BLOCKS on a multiprocessor.
template <int kConsumers, int kBlocks>
__device__ __forceinline__ void GiveRegisters() {
  if constexpr (kConsumers == 3) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
  } else if constexpr (kConsumers * kBlocks == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  }
}
template <int kConsumers, int kBlocks>
__device__ __forceinline__ void TakeRegisters() {
  if constexpr (kConsumers == 3) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
  } else if constexpr (kConsumers == 2 && kBlocks == 1) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  } else if constexpr (kConsumers == 1 && kBlocks == 2) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  }
}

#endif  // OPTRAIL_OPS_LIB_HOPPER_CUH_
