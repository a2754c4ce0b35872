// What a GPU can do at best: reading memory and the L2, and multiplying on
// tensor cores.
//
// Compiled at run time; WGMMA 1 where the architecture has it.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

// Every byte once, 8 vectors a thread; the sum keeps the loads alive.
extern "C" __global__ void __launch_bounds__(512)
    read_all(const uint4* from, uint32_t* sum) {
  from += blockIdx.x * 8ull * 512 + threadIdx.x;
  uint4 v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                 : "l"(from + i * 512));
  }
  uint32_t mine = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) mine += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  if (mine == 0x5eed) *sum = mine;
}

// Every one of `vectors` in each of `rounds`, which the L2 holds and the L1 is
// not asked for.
extern "C" __global__ void __launch_bounds__(512)
    read_l2(const uint4* from, uint32_t vectors, int rounds, uint32_t* sum) {
  const uint32_t step = gridDim.x * 512;
  uint32_t mine = 0;
  for (int round = 0; round < rounds; ++round) {
    for (uint32_t i = blockIdx.x * 512 + threadIdx.x; i + 3 * step < vectors;
         i += 4 * step) {
      uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w)
                     : "l"(from + i + j * step));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) mine += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
  }
  if (mine == 0x5eed) *sum = mine;
}

// Pseudo-random bf16 between 1 and 2 in magnitude, of both signs: zeros draw
// less power, and run faster than data does.
__device__ uint32_t TwoValues(uint32_t i) {
  i = (i ^ 61) ^ (i >> 16);
  i *= 9;
  i ^= i >> 4;
  i *= 0x27d4eb2d;
  i ^= i >> 15;
  return (i & 0x807f807f) | 0x3f803f80;
}

#if WGMMA

// Two warpgroups multiply [64, 64] by [64, 256] in shared memory, again and
// again: 2 * 2 * 64 * 64 * 256 FLOP a round and block.
extern "C" __global__ void __launch_bounds__(256, 1)
    multiply(int rounds, float* sum) {
  extern __shared__ __align__(1024) uint32_t tiles[];
  constexpr int kBytesA = 64 * 64 * 2, kBytesB = 256 * 64 * 2;
  for (int i = threadIdx.x; i < (2 * kBytesA + kBytesB) / 4; i += 256)
    tiles[i] = TwoValues(i + blockIdx.x * 65536);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint32_t base = (uint32_t)__cvta_generic_to_shared(tiles);
  const uint32_t a = base + kBytesB + threadIdx.x / 128 * kBytesA;
  // 128-byte swizzle, 1024 bytes from 8 rows to the next.
  const auto descriptor = [](uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) |
           (1ull << 62);
  };
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
#define D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define D16(i) D4(i), D4((i) + 4), D4((i) + 8), D4((i) + 12)
#define D64(i) D16(i), D16((i) + 16), D16((i) + 32), D16((i) + 48)
  for (int round = 0; round < rounds; ++round) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
          "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
          "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,"
          "%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
          "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,"
          "%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,"
          "%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,"
          "%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,"
          "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,"
          "%124,%125,%126,%127}, %128, %129, 1, 1, 1, 0, 0;"
          : D64(0), D64(64)
          : "l"(descriptor(a + 32 * k)), "l"(descriptor(base + 32 * k)));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) all += d[i];
  if (all == 12345.678f) *sum = all;
}

#else

// Eight warps multiply [16, 16] by [16, 8] in registers, eight products in
// flight each: 8 * 8 * 2 * 16 * 8 * 16 FLOP a round and block.
extern "C" __global__ void __launch_bounds__(256)
    multiply(int rounds, float* sum) {
  uint32_t a[4], b[2];
  for (int i = 0; i < 4; ++i) a[i] = TwoValues(threadIdx.x * 8 + i);
  for (int i = 0; i < 2; ++i) b[i] = TwoValues(threadIdx.x * 8 + 4 + i);
  float d[8][4] = {};
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  float all = 0;
  for (int i = 0; i < 8; ++i) all += d[i][0] + d[i][1] + d[i][2] + d[i][3];
  if (all == 12345.678f) *sum = all;
}

#endif
