// layer_norm and rms_norm of rows on CUDA (norm.h has the formula): one read,
// one write, unless a row is too long for registers.
//
// Rows stay in the registers of the threads that share them: lanes of a warp,
// warps of a block, or blocks of a cluster. Each thread has its elements of
// ROWS rows at once, so that gamma and beta are read once for all of them and
// more is in flight. First comes the mean, then the squares about it, so that
// nothing cancels.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   CENTRED 1 layer_norm, 0 rms_norm; STATISTICS 1: mean and rstd are written;
//   THREADS_PER_ROW (a power of two); GROUPS (rows side by side in a
//   block); ROWS (one after another in a thread); CLUSTER (blocks per row);
//   VECTOR and ODD (rows.cuh); ITEMS (accesses per thread and row);
//   RESIDENT 0: rows are read for each sum anew, ITEMS accesses at a time;
//   EARLY 1: gamma and beta are loaded before threads meet, which hides how long
//   that takes and costs registers; STREAMING 1: y is evicted first.

#include "elements.cuh"
#include "predecessors.cuh"
#include "rows.cuh"

typedef Words<int> RowWords;

// Threads of a row that meet in registers.
constexpr int kLanes = THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32;
constexpr int kWarpsPerRow = THREADS_PER_ROW / kLanes;
constexpr int kParts = kWarpsPerRow * CLUSTER;  // of a row, one a warp
constexpr float kEpsilon = 1e-5f;

// The sums over the threads that share each row, in all of them. `turn` is
// another one for each sum of a kernel.
__device__ __forceinline__ void SumOverRows(float (&sums)[ROWS], int turn,
                                            [[maybe_unused]] int rank) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) sums[r] = SumOfLanes<kLanes>(sums[r]);
  if constexpr (kParts > 1) {
    __shared__ float parts[2][GROUPS][ROWS][kParts];
    const int warp = threadIdx.x % THREADS_PER_ROW / 32;
    const int group = threadIdx.x / THREADS_PER_ROW, lane = threadIdx.x % 32;
#if CLUSTER > 1
    // Every block gets the parts of all.
    if (lane < CLUSTER) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const uint32_t place = (uint32_t)__cvta_generic_to_shared(
            &parts[turn][group][r][rank * kWarpsPerRow + warp]);
        asm volatile(
            "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
            "st.shared::cluster.f32 [remote], %2;}" ::"r"(place),
            "r"(lane), "f"(sums[r])
            : "memory");
      }
    }
    asm volatile(
        "barrier.cluster.arrive.release.aligned;"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
#else
    if (lane == 0) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) parts[turn][group][r][warp] = sums[r];
    }
    __syncthreads();
#endif
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float* const of_row = parts[turn][group][r];
      sums[r] = 0;
      if constexpr (kParts <= 8) {
#pragma unroll
        for (int i = 0; i < kParts; ++i) sums[r] += of_row[i];
      } else {
        for (int i = lane; i < kParts; i += 32) sums[r] += of_row[i];
        sums[r] = SumOfLanes<32>(sums[r]);
      }
    }
  }
}

// Thread `in_row` of a row has the accesses in_row, in_row + THREADS_PER_ROW...
// behind `first`.
__device__ __forceinline__ void LoadItems(const Element* x,
                                          const RowWords& row, int first,
                                          Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < row.count) v[i] = LoadWord(x, row, index);
  }
}

// What of gamma or beta stands beside them.
__device__ __forceinline__ void LoadItemsBeside(const Element* x,
                                                const RowWords& row, int first,
                                                Vector* v) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index < row.count) v[i] = LoadBeside(x, row, index);
  }
}

// The sum of (x - mean)^kPower.
template <int kPower>
__device__ __forceinline__ float SumOfItems(const Vector* v,
                                            const RowWords& row, int first,
                                            float mean) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= row.count) continue;
    float x[VECTOR];
    Values(v[i], row, index, CENTRED && kPower == 2 ? mean : 0, x);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const float apart = CENTRED && kPower == 2 ? x[j] - mean : x[j];
      sum = kPower == 2 ? fmaf(apart, apart, sum) : sum + apart;
    }
  }
  return sum;
}

struct Row {
  float mean, rstd;
};

__device__ __forceinline__ void StoreItems(const Vector* v, const Row& row,
                                           const Vector* gamma,
                                           const Vector* beta,
                                           const RowWords& words, int first,
                                           Element* y) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = first + i * THREADS_PER_ROW;
    if (index >= words.count) continue;
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
    StoreWord<STREAMING>(y, words, index, FromFloats(x));
  }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_ROW * GROUPS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        normalize(const Element* x, const Element* gamma,
#if CENTRED
                  const Element* beta,
#endif
                  Element* y,
#if STATISTICS && CENTRED
                  float* mean,
#endif
#if STATISTICS
                  float* rstd,
#endif
                  long long rows, int columns) {
  AwaitPredecessors();
#if !CENTRED
  const Element* const beta = nullptr;
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
  RowWords words[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    words[r] = WordsOfRow<int>(r < live ? row0 + r : 0, rows, columns);
    if (r >= live) words[r].count = 0;
  }

  // Rows that start in the middle of a word have gamma and beta at places of
  // their own.
  constexpr int kOwn = ODD ? ROWS : 1;
  Vector v[ROWS][ITEMS], scale[kOwn][ITEMS], shift[kOwn][ITEMS];
  const auto load_beside = [&](int first) {
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      LoadItemsBeside(gamma, words[r], first, scale[r]);
      if (CENTRED) LoadItemsBeside(beta, words[r], first, shift[r]);
    }
  };
  const int begin = rank * THREADS_PER_ROW * ITEMS + in_row;
#if RESIDENT
#pragma unroll
  for (int r = 0; r < ROWS; ++r) LoadItems(x, words[r], begin, v[r]);
#if EARLY
  load_beside(begin);
#endif
#else
  constexpr int kStep = CLUSTER * THREADS_PER_ROW * ITEMS;
#endif
#if CLUSTER > 1
  // All blocks run before one writes into another's memory.
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
#endif
  Row row[ROWS] = {};
  float sums[ROWS];
#pragma unroll
  for (int turn = CENTRED ? 0 : 1; turn < 2; ++turn) {
#if RESIDENT
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      sums[r] = turn == 0 ? SumOfItems<1>(v[r], words[r], begin, 0)
                          : SumOfItems<2>(v[r], words[r], begin, row[r].mean);
    }
#else
    sums[0] = 0;
    for (int first = begin; first < words[0].count; first += kStep) {
      LoadItems(x, words[0], first, v[0]);
      sums[0] += turn == 0 ? SumOfItems<1>(v[0], words[0], first, 0)
                           : SumOfItems<2>(v[0], words[0], first, row[0].mean);
    }
#endif
    SumOverRows(sums, turn, rank);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float average = sums[r] / columns;
      if (turn == 0) row[r].mean = average;
      if (turn == 1) row[r].rstd = rsqrtf(average + kEpsilon);
    }
  }
#if STATISTICS
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (r < live && in_row == 0 && rank == 0) {
#if CENTRED
      mean[row0 + r] = row[r].mean;
#endif
      rstd[row0 + r] = row[r].rstd;
    }
  }
#endif
#if RESIDENT
#if !EARLY
  load_beside(begin);
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    StoreItems(v[r], row[r], scale[r % kOwn], shift[r % kOwn], words[r], begin,
               y);
  }
#else
  for (int first = begin; first < words[0].count; first += kStep) {
    LoadItems(x, words[0], first, v[0]);
    load_beside(first);
    StoreItems(v[0], row[0], scale[0], shift[0], words[0], first, y);
  }
#endif
}
