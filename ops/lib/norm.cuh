// layer_norm and rms_norm of rows on CUDA (norm.h has the formula): one read,
// one write, unless a row is too long for registers.
//
// Rows stay in the registers of the threads that share them: lanes of a warp,
// warps of a block, or blocks of a cluster. Each thread has its elements of
// ROWS rows at once, so that gamma and beta are read once for all of them and
// more is in flight. Mean and variance come from each thread's own mean and
// squares about it, which combine in pairs (Chan, Golub and LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979):
// nothing cancels, and threads meet once.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   CENTRED 1 layer_norm, 0 rms_norm; STATISTICS 1: mean and rstd are written;
//   THREADS_PER_ROW (a power of two from 32); GROUPS (rows side by side in a
//   block); ROWS (one after another in a thread); CLUSTER (blocks per row);
//   VECTOR (elements per access); ITEMS (accesses per thread and row);
//   RESIDENT 0: rows are read twice, ITEMS accesses at a time; EARLY 1: gamma
//   and beta are loaded before threads meet, which hides how long that takes
//   and costs registers; STREAMING 1: y is evicted first.

#include "elements.cuh"

typedef Elements<VECTOR> Vector;

constexpr int kWarpsPerRow = THREADS_PER_ROW / 32;
constexpr int kParts = kWarpsPerRow * CLUSTER;  // of a row, one a warp
constexpr float kEpsilon = 1e-5f;

// Of some elements of a row: how many, their mean, and the sum of the squares
// of their distances to it. rms_norm has squares alone.
struct Moments {
#if CENTRED
  float count, mean;
#endif
  float squares;
};

__device__ __forceinline__ Moments Combine(const Moments& a,
                                           const Moments& b) {
#if CENTRED
  const float count = a.count + b.count;
  const float share = count > 0 ? __fdividef(b.count, count) : 0;
  const float apart = b.mean - a.mean;
  return {count, fmaf(apart, share, a.mean),
          fmaf(apart, apart * (a.count * share), a.squares + b.squares)};
#else
  return {a.squares + b.squares};
#endif
}

__device__ __forceinline__ Moments OfWarp(Moments m) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    Moments other;
#if CENTRED
    other.count = __shfl_xor_sync(~0u, m.count, offset);
    other.mean = __shfl_xor_sync(~0u, m.mean, offset);
#endif
    other.squares = __shfl_xor_sync(~0u, m.squares, offset);
    // Both lanes combine in the same order, so that they agree.
    m = threadIdx.x & offset ? Combine(other, m) : Combine(m, other);
  }
  return m;
}

// Thread `in_row` of a row has the accesses in_row, in_row + THREADS_PER_ROW...
// behind `first`.
__device__ __forceinline__ void LoadItems(const Vector* from, int first,
                                          int vectors, Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < vectors) v[i] = LoadOnce(from + index);
  }
}

__device__ __forceinline__ Moments MomentsOfItems(const Vector* v, int first,
                                                  int vectors) {
  Moments m = {};
#if CENTRED
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
      float x[VECTOR];
      ToFloats(v[i], x);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) sum += x[j];
      m.count += VECTOR;
    }
  }
  m.mean = m.count > 0 ? __fdividef(sum, m.count) : 0;
#endif
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS_PER_ROW < vectors) {
      float x[VECTOR];
      ToFloats(v[i], x);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
#if CENTRED
        x[j] -= m.mean;
#endif
        m.squares = fmaf(x[j], x[j], m.squares);
      }
    }
  }
  return m;
}

struct Row {
  float mean, rstd;
};

// gamma or beta at the same places. They stay in the caches, and where they are
// loaded is where this stands.
__device__ __forceinline__ void LoadFactors(const Vector* from, int first,
                                            int vectors, Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= vectors) continue;
    if constexpr (sizeof(Vector) == 16) {
      uint32_t* const w = (uint32_t*)v[i].at;
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "l"(from + index));
    } else {
      v[i] = from[index];
    }
  }
}

__device__ __forceinline__ void StoreItems(const Vector* v, const Row& row,
                                           const Vector* gamma,
                                           const Vector* beta, int first,
                                           int vectors, Vector* to) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= vectors) continue;
    float x[VECTOR], scale[VECTOR];
    ToFloats(v[i], x);
    ToFloats(gamma[i], scale);
#if CENTRED
    float shift[VECTOR];
    ToFloats(beta[i], shift);
#endif
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
#if CENTRED
      x[j] = fmaf((x[j] - row.mean) * row.rstd, scale[j], shift[j]);
#else
      x[j] = x[j] * row.rstd * scale[j];
#endif
    }
    Store<STREAMING>(to + index, FromFloats(x));
  }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_ROW * GROUPS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        normalize(const Element* x, const Vector* gamma,
#if CENTRED
                  const Vector* beta,
#endif
                  Element* y,
#if STATISTICS && CENTRED
                  float* mean,
#endif
#if STATISTICS
                  float* rstd,
#endif
                  long long rows, int columns) {
#if !CENTRED
  const Vector* const beta = nullptr;
#endif
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int group = threadIdx.x / THREADS_PER_ROW;
  [[maybe_unused]] int rank = 0;
#if CLUSTER > 1
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  const long long row0 =
      ((long long)(blockIdx.x / CLUSTER) * GROUPS + group) * ROWS;
  // Threads without rows stay for the barriers.
  const int live = (int)max(0ll, min(rows - row0, (long long)ROWS));
  const int vectors = columns / VECTOR;
  const Vector* const from = (const Vector*)(x + row0 * columns);
  Vector* const to = (Vector*)(y + row0 * columns);

  Vector v[ROWS][ITEMS], scale[ITEMS], shift[ITEMS];
  Moments m[ROWS];
#if RESIDENT
  const int first = rank * THREADS_PER_ROW * ITEMS + in_row;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (r < live) LoadItems(from + (long long)r * vectors, first, vectors, v[r]);
  }
#if EARLY
  LoadFactors(gamma, first, vectors, scale);
  if (CENTRED) LoadFactors(beta, first, vectors, shift);
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    m[r] = MomentsOfItems(v[r], first, r < live ? vectors : 0);
  }
#else
  m[0] = {};
  for (int first = in_row; first < (live ? vectors : 0);
       first += THREADS_PER_ROW * ITEMS) {
    LoadItems(from, first, vectors, v[0]);
    m[0] = Combine(m[0], MomentsOfItems(v[0], first, vectors));
  }
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) m[r] = OfWarp(m[r]);
#if THREADS_PER_ROW > 32 || CLUSTER > 1
  __shared__ Moments parts[GROUPS][ROWS][kParts];
  const int warp = in_row / 32, lane = in_row % 32;
#if CLUSTER > 1
  // All blocks run before one writes into another's memory.
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
  if (lane < CLUSTER) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const uint32_t place = (uint32_t)__cvta_generic_to_shared(
          &parts[group][r][rank * kWarpsPerRow + warp]);
      const float* const words = (const float*)&m[r];
#pragma unroll
      for (int i = 0; i < (int)sizeof(Moments) / 4; ++i) {
        asm volatile(
            "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
            "st.shared::cluster.f32 [remote], %2;}" ::"r"(place + 4 * i),
            "r"(lane), "f"(words[i])
            : "memory");
      }
    }
  }
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#else
  if (lane == 0) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) parts[group][r][warp] = m[r];
  }
  __syncthreads();
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    m[r] = {};
    for (int i = lane; i < kParts; i += 32) {
      m[r] = Combine(m[r], parts[group][r][i]);
    }
    m[r] = OfWarp(m[r]);
  }
#endif
  Row row[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    row[r].rstd = rsqrtf(m[r].squares / columns + kEpsilon);
#if CENTRED
    row[r].mean = m[r].mean;
#endif
#if STATISTICS
    if (r < live && in_row == 0 && rank == 0) {
#if CENTRED
      mean[row0 + r] = row[r].mean;
#endif
      rstd[row0 + r] = row[r].rstd;
    }
#endif
  }
#if RESIDENT
#if !EARLY
  LoadFactors(gamma, first, vectors, scale);
  if (CENTRED) LoadFactors(beta, first, vectors, shift);
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (r >= live) continue;
    StoreItems(v[r], row[r], scale, shift, first, vectors,
               to + (long long)r * vectors);
  }
#else
  for (int first = in_row; first < (live ? vectors : 0);
       first += THREADS_PER_ROW * ITEMS) {
    LoadItems(from, first, vectors, v[0]);
    LoadFactors(gamma, first, vectors, scale);
    if (CENTRED) LoadFactors(beta, first, vectors, shift);
    StoreItems(v[0], row[0], scale, shift, first, vectors, to);
  }
#endif
}
