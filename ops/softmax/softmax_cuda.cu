// y[row, :] = exp(x[row, :] - max) / sum on CUDA: one read, one write, unless a
// row is too long for registers.
//
// A row stays in the registers of the threads that share it: lanes of a warp,
// warps of a block, or blocks of a cluster. Each thread folds its elements into
// a pair (maximum, sum of exp relative to it); pairs combine in one reduction
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018),
// so that threads meet once.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   THREADS_PER_ROW (a power of two);
//   ROWS_PER_BLOCK; CLUSTER (blocks per row); VECTOR and ODD (rows.cuh);
//   ITEMS (accesses per thread): THREADS_PER_ROW * CLUSTER * VECTOR * ITEMS
//   covers a row; RESIDENT 0: a row is read twice, ITEMS accesses at a time;
//   KEEP 1: exponentials are kept where they may be; STREAMING 1: stores that
//   the caches evict first; PAST_L1 1: loads that the L1 does not keep.

#include "elements.cuh"
#include "predecessors.cuh"
#include "rows.cuh"

// Threads of a row that meet in registers.
constexpr int kLanes = THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32;
constexpr int kWarpsPerRow = THREADS_PER_ROW / kLanes;

typedef Words<int> RowWords;

__device__ __forceinline__ Vector LoadOnce(const Vector* from) {
  Vector v;
#if PAST_L1 && VECTOR * (ELEMENT == 0 ? 4 : 2) == 16
  uint32_t* w = (uint32_t*)v.at;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "l"(from));
#else
  v = *from;
#endif
  return v;
}

constexpr float kNone = -3.402823466e38f;  // smaller than any input but -inf
// What words hold beside their row: nothing is added by its exponential.
#define BLANK __int_as_float(0xff800000)

// exp(x); the subtraction of the maximum comes before, so that large inputs do
// not overflow.
__device__ __forceinline__ float Exp(float x) {
  const float t = x * 1.4426950408889634f;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
#if ELEMENT == 0
  // The error of rounding t, and log2(e) to a float.
  const float lost = fmaf(x, 1.9259629e-8f, fmaf(x, 1.4426950408889634f, -t));
  // Where nothing is left of the exponential, it may be infinity less infinity.
  if (t > -150.0f) y = fmaf(y * 0.6931472f, lost, y);
#endif
  return y;
}

struct Pair {
  float max, sum;
};
__device__ __forceinline__ Pair Combine(Pair a, Pair b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * Exp(a.max - max) + b.sum * Exp(b.max - max)};
}
__device__ __forceinline__ Pair InWarp(Pair p, int width) {
  for (int offset = width / 2; offset > 0; offset /= 2) {
    const Pair other = {__shfl_xor_sync(~0u, p.max, offset),
                        __shfl_xor_sync(~0u, p.sum, offset)};
    p = Combine(p, other);
  }
  return p;
}

__device__ __forceinline__ void LoadItems(const Element* x,
                                          const RowWords& row, int first,
                                          Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= row.count) continue;
    if (ODD && index >= row.loadable) {
      v[i] = LoadWord(x, row, index);
    } else {
      v[i] = LoadOnce((const Vector*)x + row.first + index);
    }
  }
}

// Calls f(i, values) with the values of each of the thread's words.
template <typename F>
__device__ __forceinline__ void ForItems(const Vector* v, const RowWords& row,
                                         int first, F f) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= row.count) continue;
    float values[VECTOR];
    Values(v[i], row, index, BLANK, values);
    f(i, values);
  }
}

__device__ __forceinline__ float MaxOfItems(const Vector* v,
                                            const RowWords& row, int first) {
  float max = kNone;
  ForItems(v, row, first, [&](int, const float(&values)[VECTOR]) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) max = fmaxf(max, values[j]);
  });
  return max;
}

__device__ __forceinline__ Pair FoldItems(const Vector* v, const RowWords& row,
                                          int first) {
  Pair mine = {MaxOfItems(v, row, first), 0};
  ForItems(v, row, first, [&](int, const float(&values)[VECTOR]) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) mine.sum += Exp(values[j] - mine.max);
  });
  return mine;
}

// The exponentials of 16-bit elements relative to the thread's own maximum may be
// kept, and scaled in the end: an exponential less per element, twice the
// registers, and a rounding of f32 more.
constexpr bool kKeep = KEEP && RESIDENT && ELEMENT != 0;

__device__ __forceinline__ Pair FoldAndKeep(const Vector* v,
                                            const RowWords& row, int first,
                                            float* kept) {
  Pair mine = {MaxOfItems(v, row, first), 0};
  ForItems(v, row, first, [&](int i, const float(&values)[VECTOR]) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      kept[i * VECTOR + j] = Exp(values[j] - mine.max);
      mine.sum += kept[i * VECTOR + j];
    }
  });
  return mine;
}

// Stores what f(i, j) gives for element j of the thread's word i.
template <typename F>
__device__ __forceinline__ void StoreItems(Element* y, const RowWords& row,
                                           int first, F f) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= row.count) continue;
    float out[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) out[j] = f(i, j);
    StoreWord<STREAMING>(y, row, index, FromFloats(out));
  }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_ROW * ROWS_PER_BLOCK)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        softmax(const Element* x, Element* y, long long rows, int columns) {
  AwaitPredecessors();
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int row_in_block = threadIdx.x / THREADS_PER_ROW;
  int rank = 0;
#if CLUSTER > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  const long long row =
      (long long)(blockIdx.x / CLUSTER) * ROWS_PER_BLOCK + row_in_block;
  const bool live = row < rows;
  RowWords words = WordsOfRow<int>(live ? row : 0, rows, columns);
  // Threads without a row stay for the barriers.
  if (!live) words.count = 0;
  Vector v[ITEMS];
#if RESIDENT
  const int first = rank * THREADS_PER_ROW * ITEMS + in_row;
  LoadItems(x, words, first, v);
  float kept[kKeep ? ITEMS * VECTOR : 1];
  Pair mine = kKeep ? FoldAndKeep(v, words, first, kept)
                    : FoldItems(v, words, first);
  const float own_max = mine.max;
#else
  const int begin = rank * THREADS_PER_ROW * ITEMS + in_row;
  constexpr int kStep = CLUSTER * THREADS_PER_ROW * ITEMS;
  Pair mine = {kNone, 0};
  for (int first = begin; first < words.count; first += kStep) {
    LoadItems(x, words, first, v);
    mine = Combine(mine, FoldItems(v, words, first));
  }
#endif
  mine = InWarp(mine, kLanes);
#if THREADS_PER_ROW > 32 || CLUSTER > 1
  __shared__ Pair pairs[ROWS_PER_BLOCK][kWarpsPerRow * CLUSTER];
  const int warp = in_row / 32, lane = in_row % 32;
#if CLUSTER > 1
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
  // Every block gets the pairs of all.
  if (lane < CLUSTER) {
    const uint32_t place = (uint32_t)__cvta_generic_to_shared(
        &pairs[row_in_block][rank * kWarpsPerRow + warp]);
    asm volatile(
        "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
        "st.shared::cluster.v2.f32 [remote], {%2, %3};}" ::"r"(place),
        "r"(lane), "f"(mine.max), "f"(mine.sum)
        : "memory");
  }
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#else
  if (lane == 0) pairs[row_in_block][warp] = mine;
  __syncthreads();
#endif
  mine = {kNone, 0};
  for (int i = lane; i < kWarpsPerRow * CLUSTER; i += 32)
    mine = Combine(mine, pairs[row_in_block][i]);
  mine = InWarp(mine, 32);
#endif
#if RESIDENT
  if (kKeep) {
    const float scale = Exp(own_max - mine.max) / mine.sum;
    StoreItems(y, words, first,
               [&](int i, int j) { return kept[i * VECTOR + j] * scale; });
  } else {
    const float scale = 1.0f / mine.sum;
    StoreItems(y, words, first, [&](int i, int j) {
      return Exp(ToFloat(v[i].at[j]) - mine.max) * scale;
    });
  }
#else
  const float scale = 1.0f / mine.sum;
  for (int first = begin; first < words.count; first += kStep) {
    LoadItems(x, words, first, v);
    StoreItems(y, words, first, [&](int i, int j) {
      return Exp(ToFloat(v[i].at[j]) - mine.max) * scale;
    });
  }
#endif
}
