// y = softmax(q k^T / sqrt(d)) v on tensor cores from sm_80 on, any shape:
// cp.async into two shared blocks of keys and values, ldmatrix, mma.sync
// m16n8k16, the online softmax of online_softmax.h in registers.
//
// Heads that share keys stand one after another, so that they are rows of one
// head of GROUP times as many queries. A warp has 16 rows.
//
// Compiled at run time with these knobs as macros:
//   INPUT "bf16" or "f16"; D, and PADDED, the next multiple of 16; WARPS; KEYS
//   (of a block); VECTOR: elements per copy, 8, 4, 2 or 1, that divide D;
//   CAUSAL 0|1.

#include "functions.cuh"
#include "predecessors.cuh"

typedef unsigned int uint32_t;
typedef unsigned short uint16_t;

constexpr int kThreads = WARPS * 32;
constexpr int kRows = WARPS * 16;
// A pad of 16 bytes a row keeps ldmatrix free of bank conflicts.
constexpr int kPitch = PADDED + 8;
constexpr int kBlock = KEYS * kPitch;
constexpr float kNone = -3.402823466e38f;  // smaller than any score but -inf

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ uint32_t Pack(float low, float high) {
  uint32_t packed;
  asm("cvt.rn." INPUT "x2.f32 %0, %1, %2;"
      : "=r"(packed)
      : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ void LoadMatrices(uint32_t (&m)[4],
                                             const uint16_t* at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
      : "r"(SharedAddress(at)));
}
__device__ __forceinline__ void LoadTransposed(uint32_t (&m)[4],
                                               const uint16_t* at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
      : "r"(SharedAddress(at)));
}
__device__ __forceinline__ void Multiply(float (&sum)[4],
                                         const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." INPUT "." INPUT
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies kCount rows of `from` [rows, D] from row0 on; zeros beyond it and in
// the padding.
template <int kCount>
__device__ __forceinline__ void LoadRows(uint16_t* to, const uint16_t* from,
                                         int rows, int row0) {
  constexpr int kPieces = PADDED / VECTOR;
#pragma unroll 4
  for (int piece = threadIdx.x; piece < kCount * kPieces; piece += kThreads) {
    const int row = piece / kPieces, column = piece % kPieces * VECTOR;
    const bool inside = row0 + row < rows && column < D;
    const uint16_t* const at =
        inside ? from + (long long)(row0 + row) * D + column : from;
    uint16_t* const place = to + row * kPitch + column;
    if (VECTOR == 8) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                       SharedAddress(place)),
                   "l"(at), "r"(inside ? 16 : 0)
                   : "memory");
    } else if (VECTOR > 1) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                       SharedAddress(place)),
                   "l"(at), "n"(VECTOR > 1 && VECTOR < 8 ? VECTOR * 2 : 4),
                   "r"(inside ? VECTOR * 2 : 0)
                   : "memory");
    } else {
      *place = inside ? *at : 0;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention_mma(const uint16_t* q, const uint16_t* k, const uint16_t* v,
                  uint16_t* y, int kv_heads, int rows, int queries, int keys,
                  float scale) {
  AwaitPredecessors();
  extern __shared__ __align__(16) uint16_t shared[];
  uint16_t* const tile_q = shared;
  uint16_t* const tiles_k = tile_q + kRows * kPitch;
  uint16_t* const tiles_v = tiles_k + 2 * kBlock;

  // With CAUSAL, later queries see more keys: they come first.
  const int tiles = gridDim.x / kv_heads;
  const int row0 = (tiles - 1 - (int)blockIdx.x / kv_heads) * kRows;
  const long long head = blockIdx.x % kv_heads;
  q += head * rows * D;
  y += head * rows * D;
  k += head * keys * D;
  v += head * keys * D;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Keys that a row sees.
  const int first_seen = keys - queries + 1;
  const auto seen_by = [&](int row) {
    return CAUSAL ? min(keys, first_seen + row % queries) : keys;
  };
  int seen = keys;
  if (CAUSAL && rows == queries) seen = seen_by(min(row0 + kRows, rows) - 1);
  const int blocks = (seen + KEYS - 1) / KEYS;
  const int row = row0 + warp * 16 + lane / 4;  // and row + 8
  const int limits[2] = {seen_by(row), seen_by(row + 8)};

  float sums[PADDED / 8][4] = {};
  float max[2] = {kNone, kNone}, total[2] = {};
  const auto load = [&](int block) {
    if (block < blocks) {
      LoadRows<KEYS>(tiles_k + block % 2 * kBlock, k, keys, block * KEYS);
      LoadRows<KEYS>(tiles_v + block % 2 * kBlock, v, keys, block * KEYS);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  LoadRows<kRows>(tile_q, q, rows, row0);
  load(0);
  for (int block = 0; block < blocks; ++block) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    load(block + 1);
    const uint16_t* const tile_k = tiles_k + block % 2 * kBlock;
    const uint16_t* const tile_v = tiles_v + block % 2 * kBlock;
    float s[KEYS / 8][4] = {};
#pragma unroll
    for (int at = 0; at < PADDED; at += 16) {
      uint32_t a[4];
      LoadMatrices(
          a, tile_q + (warp * 16 + lane % 16) * kPitch + at + lane / 16 * 8);
#pragma unroll
      for (int i = 0; i < KEYS / 8; i += 2) {
        uint32_t b[4];
        LoadMatrices(b, tile_k + (i * 8 + lane / 16 * 8 + lane % 8) * kPitch +
                            at + lane / 8 % 2 * 8);
        Multiply(s[i], a, b[0], b[1]);
        Multiply(s[i + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = max[half];
#pragma unroll
      for (int i = 0; i < KEYS / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& score = s[i][half * 2 + j];
          const int key = block * KEYS + i * 8 + lane % 4 * 2 + j;
          if (key >= limits[half]) score = __int_as_float(0xff800000);
          largest = fmaxf(largest, score);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float rescale = Exp2((max[half] - largest) * scale);
      max[half] = largest;
      total[half] *= rescale;
#pragma unroll
      for (int i = 0; i < PADDED / 8; ++i) {
        sums[i][half * 2] *= rescale;
        sums[i][half * 2 + 1] *= rescale;
      }
#pragma unroll
      for (int i = 0; i < KEYS / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& weight = s[i][half * 2 + j];
          weight = Exp2(fmaf(weight, scale, -largest * scale));
          total[half] += weight;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < KEYS / 8; i += 2) {
      const uint32_t a[4] = {Pack(s[i][0], s[i][1]), Pack(s[i][2], s[i][3]),
                             Pack(s[i + 1][0], s[i + 1][1]),
                             Pack(s[i + 1][2], s[i + 1][3])};
#pragma unroll
      for (int j = 0; j < PADDED / 8; j += 2) {
        uint32_t b[4];
        LoadTransposed(b, tile_v + (i * 8 + lane % 16) * kPitch + j * 8 +
                              lane / 16 * 8);
        Multiply(sums[j], a, b[0], b[1]);
        Multiply(sums[j + 1], a, b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float all = total[half];
    all += __shfl_xor_sync(~0u, all, 1);
    all += __shfl_xor_sync(~0u, all, 2);
    all = 1.0f / all;
    if (row + half * 8 >= rows) continue;
    uint16_t* const to = y + (long long)(row + half * 8) * D;
#pragma unroll
    for (int j = 0; j < PADDED / 8; ++j) {
      const uint32_t pair =
          Pack(sums[j][half * 2] * all, sums[j][half * 2 + 1] * all);
      const int column = j * 8 + lane % 4 * 2;
      if (D % 2 == 0) {
        if (column < D) *(uint32_t*)(to + column) = pair;
      } else {
        if (column < D) to[column] = (uint16_t)pair;
        if (column + 1 < D) to[column + 1] = (uint16_t)(pair >> 16);
      }
    }
  }
}
