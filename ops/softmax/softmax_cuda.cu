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
//   THREADS_PER_ROW (a power of two from 32);
//   ROWS_PER_BLOCK; CLUSTER (blocks per row); VECTOR (elements per access);
//   ITEMS (accesses per thread): THREADS_PER_ROW * CLUSTER * VECTOR * ITEMS
//   covers a row; RESIDENT 0: a row is read twice, ITEMS accesses at a time;
//   KEEP 1: exponentials are kept where they may be; STREAMING 1: stores that
//   the caches evict first; PAST_L1 1: loads that the L1 does not keep.

#include "elements.cuh"

constexpr int kWarpsPerRow = THREADS_PER_ROW / 32;

typedef Elements<VECTOR> Vector;

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

// exp(x); the subtraction of the maximum comes before, so that large inputs do
// not overflow.
__device__ __forceinline__ float Exp(float x) {
  const float t = x * 1.4426950408889634f;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
#if ELEMENT == 0
  // What rounding cost t, and log2(e) when it became a float.
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

__device__ __forceinline__ void LoadItems(const Vector* from, int first,
                                          int vectors, Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < vectors) v[i] = LoadOnce(from + index);
  }
}

__device__ __forceinline__ Pair FoldItems(const Vector* v, int first,
                                          int vectors) {
  Pair mine = {kNone, 0};
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        mine.max = fmaxf(mine.max, ToFloat(v[i].at[j]));
    }
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        mine.sum += Exp(ToFloat(v[i].at[j]) - mine.max);
    }
  }
  return mine;
}

// The exponentials of 16-bit elements relative to the thread's own maximum may be
// kept, and scaled in the end: an exponential less per element, twice the
// registers, and a rounding of f32 more.
constexpr bool kKeep = KEEP && RESIDENT && ELEMENT != 0;

__device__ __forceinline__ Pair FoldAndKeep(const Vector* v, int first,
                                            int vectors, float* kept) {
  Pair mine = {kNone, 0};
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        mine.max = fmaxf(mine.max, ToFloat(v[i].at[j]));
    }
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        kept[i * VECTOR + j] = Exp(ToFloat(v[i].at[j]) - mine.max);
        mine.sum += kept[i * VECTOR + j];
      }
    }
  }
  return mine;
}

__device__ __forceinline__ void StoreKept(const float* kept, int first,
                                          int vectors, float own_max, Pair all,
                                          Vector* to) {
  const float scale = Exp(own_max - all.max) / all.sum;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < vectors) {
      Vector out;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        out.at[j] = FromFloat(kept[i * VECTOR + j] * scale);
      Store<STREAMING>(to + index, out);
    }
  }
}

__device__ __forceinline__ void StoreItems(const Vector* v, int first,
                                           int vectors, Pair all, Vector* to) {
  const float scale = 1.0f / all.sum;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < vectors) {
      Vector out;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        out.at[j] = FromFloat(Exp(ToFloat(v[i].at[j]) - all.max) * scale);
      Store<STREAMING>(to + index, out);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_ROW * ROWS_PER_BLOCK)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        softmax(const Element* x, Element* y, long long rows, int columns) {
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int row_in_block = threadIdx.x / THREADS_PER_ROW;
  int rank = 0;
#if CLUSTER > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  const long long row =
      (long long)(blockIdx.x / CLUSTER) * ROWS_PER_BLOCK + row_in_block;
  const bool live = row < rows;
  // Threads without a row stay for the barriers.
  const int vectors = live ? columns / VECTOR : 0;
  const Vector* from = (const Vector*)(x + row * columns);
  Vector v[ITEMS];
#if RESIDENT
  const int first = rank * THREADS_PER_ROW * ITEMS + in_row;
  LoadItems(from, first, vectors, v);
  float kept[kKeep ? ITEMS * VECTOR : 1];
  Pair mine = kKeep ? FoldAndKeep(v, first, vectors, kept)
                    : FoldItems(v, first, vectors);
  const float own_max = mine.max;
#else
  Pair mine = {kNone, 0};
  for (int first = in_row; first < vectors; first += THREADS_PER_ROW * ITEMS) {
    LoadItems(from, first, vectors, v);
    mine = Combine(mine, FoldItems(v, first, vectors));
  }
#endif
  mine = InWarp(mine, 32);
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
  Vector* to = (Vector*)(y + row * columns);
#if RESIDENT
  if (kKeep) {
    StoreKept(kept, first, vectors, own_max, mine, to);
  } else {
    StoreItems(v, first, vectors, mine, to);
  }
#else
  for (int first = in_row; first < vectors; first += THREADS_PER_ROW * ITEMS) {
    LoadItems(from, first, vectors, v);
    StoreItems(v, first, vectors, mine, to);
  }
#endif
}
