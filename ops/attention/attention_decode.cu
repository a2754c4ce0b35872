// y = softmax(q k^T / sqrt(d)) v for few queries over many keys, as in decoding
// over a cache: nothing but reading keys and values once.
//
// The heads that share keys are rows of one product, at most 16 of them. Warps
// and blocks divide the keys; each goes through its own, 16 at a time, with the
// online softmax of online_softmax.h, and what they found is merged in order: by
// the block that comes last, or each block of a cluster merges some columns.
// Keys and values go from memory to the operands of mma.sync without shared
// memory: the order of the columns of a product's depth, and of its results,
// is ours to choose, so that each thread loads 16 bytes.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   INPUT "bf16" or "f16", as ELEMENT; D: 64|128; ROWS; WARPS; PARTS (blocks
//   that share a head); CLUSTER 0|1 (they are a cluster, as Hopper has them);
//   CAUSAL 0|1.

#include "elements.cuh"
#include "functions.cuh"
#include "hopper.cuh"
#include "predecessors.cuh"

constexpr int kThreads = WARPS * 32;
constexpr int kChunks = D / 64;
constexpr float kNone = -3.402823466e38f;  // smaller than any score but -inf
// A part holds for every row the largest score, the sum of its weights, and the
// weighted values.
constexpr int kPitch = D + 2;

__device__ __forceinline__ void Multiply(float (&sum)[4], uint32_t a0,
                                         uint32_t a1, uint32_t a2, uint32_t a3,
                                         uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." INPUT "." INPUT
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
struct Words {
  uint32_t at[4];
};
// Eight elements; zeros where there are none.
__device__ __forceinline__ Words LoadWords(const uint16_t* from, bool exists) {
  Words words = {};
  if (exists) {
    asm volatile(
        "ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(words.at[0]), "=r"(words.at[1]), "=r"(words.at[2]),
          "=r"(words.at[3])
        : "l"(from));
  }
  return words;
}

// The state of a row: the largest score, the sum of weights, the weighted values
// of two columns.
struct State {
  float max = kNone, sum = 0, values[2] = {0, 0};
};

// Merges kCount parts of a row in order: the values at columns c and c + 1, not
// yet divided. `read(part, at, pair)` loads two floats of the row in a part; what
// is read of 16 parts is on its way together.
template <int kCount, typename Read>
__device__ __forceinline__ State Merge(int c, float scale, Read read) {
  constexpr int kTogether = kCount < 16 ? kCount : 16;
  State all;
#pragma unroll 1
  for (int first = 0; first < kCount; first += kTogether) {
    float state[kTogether][2], values[kTogether][2];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      read(first + i, 0, state[i]);
      read(first + i, 2 + c, values[i]);
    }
    float max = all.max;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) max = fmaxf(max, state[i][0]);
    const float rescale = Exp2((all.max - max) * scale);
    all.max = max;
    all.sum *= rescale;
#pragma unroll
    for (int j = 0; j < 2; ++j) all.values[j] *= rescale;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const float weight = Exp2((state[i][0] - max) * scale);
      all.sum += state[i][1] * weight;
#pragma unroll
      for (int j = 0; j < 2; ++j) all.values[j] += values[i][j] * weight;
    }
  }
  return all;
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
#if CLUSTER
    __cluster_dims__(PARTS, 1, 1)
#endif
    attention_decode(const uint16_t* q, const uint16_t* k, const uint16_t* v,
                     uint16_t* y, int queries, int keys, float scale,
                     int* counters) {
  AwaitPredecessors();
  extern __shared__ __align__(16) float of_warps[];  // [WARPS][ROWS][kPitch]
  const long long head = blockIdx.x / PARTS;
  const int part = blockIdx.x % PARTS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int in_eight = lane / 4, quad = lane % 4;
  q += head * ROWS * D;
  y += head * ROWS * D;
  k += head * keys * D;
  v += head * keys * D;
  // In steps of 16 keys.
  const int steps = (keys + 15) / 16;
  const int begin = (int)((long long)steps * part / PARTS);
  const int end = (int)((long long)steps * (part + 1) / PARTS);
  const int row = in_eight;  // and row + 8
  int limits[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    limits[half] =
        CAUSAL ? min(keys, keys - queries + 1 + (row + half * 8) % queries)
               : keys;
  }

  // q: of each 32 columns a thread has eight neighbours, as of each key.
  Words of_q[2][D / 32];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      of_q[half][i] = LoadWords(q + (row + half * 8) * D + i * 32 + quad * 8,
                                row + half * 8 < ROWS);
    }
  }
  float sums[kChunks][8][4] = {};
  float max[2] = {kNone, kNone}, total[2] = {};
  for (int step = begin + warp; step < end; step += WARPS) {
    const int key0 = step * 16;
    Words of_k[2][D / 32], of_v[kChunks][4];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const int key = key0 + tile * 8 + in_eight;
#pragma unroll
      for (int i = 0; i < D / 32; ++i) {
        of_k[tile][i] = LoadWords(
            k + (long long)key * D + i * 32 + quad * 8, key < keys);
      }
    }
    // A thread has eight neighbouring columns of the values of four keys.
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = key0 + i / 2 * 8 + quad * 2 + i % 2;
        of_v[chunk][i] = LoadWords(
            v + (long long)key * D + chunk * 64 + in_eight * 8, key < keys);
      }
    }
    float s[2][4] = {};
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
      for (int i = 0; i < D / 32; ++i) {
#pragma unroll
        for (int w = 0; w < 4; w += 2) {
          Multiply(s[tile], of_q[0][i].at[w], of_q[1][i].at[w],
                   of_q[0][i].at[w + 1], of_q[1][i].at[w + 1],
                   of_k[tile][i].at[w], of_k[tile][i].at[w + 1]);
        }
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = max[half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = s[i / 2][half * 2 + i % 2];
        const int key = key0 + i / 2 * 8 + quad * 2 + i % 2;
        if (key >= limits[half]) score = __int_as_float(0xff800000);
        largest = fmaxf(largest, score);
      }
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
      const float rescale = Exp2((max[half] - largest) * scale);
      max[half] = largest;
      total[half] *= rescale;
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
        for (int tile = 0; tile < 8; ++tile) {
          sums[chunk][tile][half * 2] *= rescale;
          sums[chunk][tile][half * 2 + 1] *= rescale;
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& weight = s[i / 2][half * 2 + i % 2];
        weight = Exp2(fmaf(weight, scale, -largest * scale));
        total[half] += weight;
      }
    }
    const uint32_t a0 = Pack(s[0][0], s[0][1]), a1 = Pack(s[0][2], s[0][3]);
    const uint32_t a2 = Pack(s[1][0], s[1][1]), a3 = Pack(s[1][2], s[1][3]);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const Words(&rows)[4] = of_v[chunk];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        Multiply(sums[chunk][2 * w], a0, a1, a2, a3,
                 __byte_perm(rows[0].at[w], rows[1].at[w], 0x5410),
                 __byte_perm(rows[2].at[w], rows[3].at[w], 0x5410));
        Multiply(sums[chunk][2 * w + 1], a0, a1, a2, a3,
                 __byte_perm(rows[0].at[w], rows[1].at[w], 0x7632),
                 __byte_perm(rows[2].at[w], rows[3].at[w], 0x7632));
      }
    }
  }

  // Adds up the sums of the warps.
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(~0u, total[half], 1);
    total[half] += __shfl_xor_sync(~0u, total[half], 2);
    if (row + half * 8 >= ROWS) continue;
    float* const mine = of_warps + (warp * ROWS + row + half * 8) * kPitch;
    if (quad == 0) mine[0] = max[half], mine[1] = total[half];
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int tile = 0; tile < 8; ++tile) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          mine[2 + chunk * 64 + (quad * 2 + j) * 8 + tile] =
              sums[chunk][tile][half * 2 + j];
        }
      }
    }
  }
  __syncthreads();
  const auto store = [&](int r, int c, const State& all) {
    *(uint32_t*)(y + r * D + c) =
        Pack(all.values[0] / all.sum, all.values[1] / all.sum);
  };
#if CLUSTER
  __shared__ __align__(8) float of_block[ROWS * kPitch];
#elif PARTS > 1
  // Counters come first, then parts[head][part][row].
  float* const parts =
      (float*)(counters + (gridDim.x / PARTS + 63) / 64 * 64) +
      head * PARTS * ROWS * kPitch;
  float* const of_block = parts + part * ROWS * kPitch;
#endif
  for (int i = threadIdx.x * 2; i < ROWS * D; i += kThreads * 2) {
    const int r = i / D, c = i % D;
    const State all =
        Merge<WARPS>(c, scale, [&](int warp, int at, float(&pair)[2]) {
          const float* const from = of_warps + (warp * ROWS + r) * kPitch + at;
          pair[0] = from[0], pair[1] = from[1];
        });
#if PARTS == 1
    store(r, c, all);
#else
    float* const mine = of_block + r * kPitch;
    mine[2 + c] = all.values[0], mine[3 + c] = all.values[1];
    if (c == 0) mine[0] = all.max, mine[1] = all.sum;
#endif
  }
#if CLUSTER
  ClusterSync();
  const uint32_t here = (uint32_t)__cvta_generic_to_shared(of_block);
  constexpr int kMine = (ROWS * D / 2 + PARTS - 1) / PARTS;  // pairs of columns
  for (int i = threadIdx.x; i < kMine; i += kThreads) {
    const int r = (part * kMine + i) * 2 / D, c = (part * kMine + i) * 2 % D;
    if (r >= ROWS) break;
    store(r, c, Merge<PARTS>(c, scale, [&](int from, int at, float(&pair)[2]) {
            asm volatile(
                "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %2, %3;"
                "ld.shared::cluster.v2.f32 {%0, %1}, [remote];}"
                : "=f"(pair[0]), "=f"(pair[1])
                : "r"(here + (r * kPitch + at) * 4), "r"(from)
                : "memory");
          }));
  }
  __syncwarp();
  ClusterSync();  // nobody leaves while others may still read what it found
#elif PARTS > 1
  if (!LastToArrive(&counters[head], PARTS)) return;
  for (int i = threadIdx.x * 2; i < ROWS * D; i += kThreads * 2) {
    const int r = i / D, c = i % D;
    store(r, c, Merge<PARTS>(c, scale, [&](int from, int at, float(&pair)[2]) {
            asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];"
                         : "=f"(pair[0]), "=f"(pair[1])
                         : "l"(parts + (from * ROWS + r) * kPitch + at)
                         : "memory");
          }));
  }
#endif
}
