// Sums of x[rows, cols] on CUDA: over the columns (one sum per row), over the
// rows (one per column), and all of it as one long row. x is read once.
//
// Blocks that share sums leave their parts in memory; the last of them to
// arrive adds those up in order, so that results repeat. Sums of columns
// can use a cluster: each block adds up some columns of what all have in shared
// memory.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   ACROSS_ROWS 0|1; THREADS; LANES: threads side by side along a row, 1 to
//   THREADS; VECTOR and ODD (rows.cuh); UNROLL (accesses in flight per thread);
//   PARTS (blocks that share sums); CLUSTER 0|1 (across rows: they are one, as
//   Hopper has them).

#include "elements.cuh"
#include "predecessors.cuh"
#include "rows.cuh"

constexpr int kGroups = THREADS / LANES;  // rows side by side

// The workspace: a counter for all blocks that share sums, then their parts.
__device__ __forceinline__ float* PartsBehind(int* counters) {
  return (float*)(counters + (gridDim.x / PARTS + 63) / 64 * 64);
}

#if !ACROSS_ROWS

// The sum over the LANES threads of a row, in the first of them.
__device__ __forceinline__ float SumOfRow(float sum) {
  __shared__ float warps[THREADS / 32];
  sum = SumOfLanes<(LANES < 32 ? LANES : 32)>(sum);
  if (LANES <= 32) return sum;
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  const int lane = threadIdx.x % LANES;
  if (lane < 32) {
    const int warp = threadIdx.x / 32;
    sum = lane < LANES / 32 ? warps[warp + lane] : 0;
    sum = SumOfLanes<32>(sum);
  }
  return sum;
}

// Block b takes part b % PARTS of kGroups rows.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    sum(const Element* x, Element* y, long long rows, long long columns,
        int* counters) {
  AwaitPredecessors();
  const int lane = threadIdx.x % LANES;
  const long long first_row = (long long)(blockIdx.x / PARTS) * kGroups;
  const long long row = first_row + threadIdx.x / LANES;
  const int part = blockIdx.x % PARTS;
  const Words<long long> words =
      WordsOfRow<long long>(row < rows ? row : 0, rows, columns);
  const long long begin = words.count * part / PARTS;
  const long long end = row < rows ? words.count * (part + 1) / PARTS : begin;
  float* const parts = PartsBehind(counters);
  float sums[UNROLL] = {};
  const auto add = [&](const Vector& v, long long word, float& sum) {
    float values[VECTOR];
    Values(v, words, word, 0, values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += values[j];
  };
  long long at = begin + lane;
  for (; at + (UNROLL - 1) * LANES < end; at += UNROLL * LANES) {
    Vector v[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) v[i] = LoadWord(x, words, at + i * LANES);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) add(v[i], at + i * LANES, sums[i]);
  }
#pragma unroll
  for (int i = 0; i < UNROLL - 1; ++i) {
    const long long word = at + i * LANES;
    if (word < end) add(LoadWord(x, words, word), word, sums[i]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) sum += sums[i];
  sum = SumOfRow(sum);
#if PARTS == 1
  if (lane == 0 && row < rows) y[row] = FromFloat(sum);
#else
  if (lane == 0 && row < rows) parts[row * PARTS + part] = sum;
  if (!LastToArrive(&counters[blockIdx.x / PARTS], PARTS)) return;
  // A warp for each row.
  for (int group = threadIdx.x / 32; group < kGroups; group += THREADS / 32) {
    const long long mine = first_row + group;
    if (mine >= rows) break;
    float all = 0;
    for (int i = threadIdx.x % 32; i < PARTS; i += 32) {
      all += __ldcg(&parts[mine * PARTS + i]);
    }
    all = SumOfLanes<32>(all);
    if (threadIdx.x % 32 == 0) y[mine] = FromFloat(all);
  }
#endif
}

#else

// Columns of a block. Rows that start in the middle of a word lie over one word
// more than their columns fill.
constexpr int kTile = (LANES - ODD) * VECTOR;
// Groups of a warp whose sums meet in registers; those of rows that start
// elsewhere do not.
constexpr int kInWarp = !ODD && LANES < 32 ? 32 / LANES : 1;
constexpr int kSums = kGroups / kInWarp;
static_assert(!ODD || kGroups % VECTOR == 0, "all rows of a thread start alike");

// Adds up the sums of all groups until there are `kLeft` of each column.
template <int kLeft>
__device__ __forceinline__ void AddGroups(float (&groups)[kSums][kTile]) {
#pragma unroll
  for (int half = kSums / 2; half >= kLeft; half /= 2) {
    for (int i = threadIdx.x; i < half * kTile; i += THREADS) {
      (&groups[0][0])[i] += (&groups[half][0])[i];
    }
    __syncthreads();
  }
}

#if CLUSTER
// All blocks of the cluster; what they wrote to shared memory is visible then.
__device__ __forceinline__ void MeetCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
#endif

// Block b takes part b % PARTS of the rows of kTile columns.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER
    __cluster_dims__(PARTS, 1, 1)
#endif
        sum(const Element* x, Element* y, long long rows, long long columns,
            int* counters) {
  AwaitPredecessors();
  __shared__ float groups[kSums][kTile];
  const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const long long first_column = (long long)(blockIdx.x / PARTS) * kTile;
  const int part = blockIdx.x % PARTS;
  const auto row_of_part = [&](int i) {
    const long long row = rows * i / PARTS;
    return ODD && i < PARTS ? row / VECTOR * VECTOR : row;
  };
  const long long begin = row_of_part(part);
  // The same for all rows of this thread: VECTOR rows are whole words.
  const int shift = ODD ? (int)((begin + group) * columns % VECTOR) : 0;
  const long long column = first_column + lane * VECTOR - shift;
  const bool live = column < columns && column < first_column + kTile;
  const long long end = live ? row_of_part(part + 1) : begin;
  // Words of the last rows may end behind the matrix.
  const long long safe_end =
      ODD ? min(end, rows - (VECTOR + columns - 1) / columns) : end;
  float* const parts = PartsBehind(counters);
  float sums[VECTOR] = {};
  long long row = begin + group;
  for (; row + (UNROLL - 1) * kGroups < safe_end; row += UNROLL * kGroups) {
    Vector v[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      v[i] = Load((const Vector*)(x + (row + i * kGroups) * columns + column));
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      float values[VECTOR];
      ToFloats(v[i], values);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) sums[j] += values[j];
    }
  }
  for (; row < end; row += kGroups) {
    const long long at = row * columns + column;
    Vector v = {};
    if (!ODD || at + VECTOR <= rows * columns) {
      v = Load((const Vector*)(x + at));
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        if (at + j < rows * columns) v.at[j] = x[at + j];
      }
    }
    float values[VECTOR];
    ToFloats(v, values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sums[j] += values[j];
  }
#if ODD
  // What the words hold beside the block's columns is left out.
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    const int i = lane * VECTOR + j - shift;
    if (i >= 0 && i < kTile) groups[group][i] = live ? sums[j] : 0;
  }
  __syncthreads();
  AddGroups<(kSums < 8 ? kSums : 8)>(groups);
  constexpr int kLeft = kSums < 8 ? kSums : 8;
#else
  // Neighbouring threads write to neighbouring words.
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
#pragma unroll
    for (int i = LANES; i < 32; i *= 2) {
      sums[j] += __shfl_xor_sync(~0u, sums[j], i);
    }
    if (group % kInWarp == 0) {
      groups[group / kInWarp][j * LANES + lane] = sums[j];
    }
  }
  __syncthreads();
  constexpr int kLeft = kSums;
#endif
  for (int i = threadIdx.x; i < kTile; i += THREADS) {
    const long long mine =
        first_column + (ODD ? i : i % LANES * VECTOR + i / LANES);
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kLeft; ++g) sum += groups[g][i];
    if (mine >= columns) continue;
#if CLUSTER
    groups[0][i] = sum;
#elif PARTS == 1
    y[mine] = FromFloat(sum);
#else
    parts[part * columns + mine] = sum;
#endif
  }
#if CLUSTER
  MeetCluster();
  const uint32_t here = (uint32_t)__cvta_generic_to_shared(groups);
  for (int i = kTile * part / PARTS + threadIdx.x;
       i < kTile * (part + 1) / PARTS && first_column + i < columns;
       i += THREADS) {
    float sum = 0;
#pragma unroll
    for (int from = 0; from < PARTS; ++from) {
      float of_block;
      asm volatile(
          "{.reg .b32 remote; mapa.shared::cluster.u32 remote, %1, %2;"
          "ld.shared::cluster.f32 %0, [remote];}"
          : "=f"(of_block)
          : "r"(here + (ODD ? i : i % VECTOR * LANES + i / VECTOR) * 4),
            "r"(from)
          : "memory");
      sum += of_block;
    }
    y[first_column + i] = FromFloat(sum);
  }
  __syncwarp();
  MeetCluster();  // nobody leaves while others may still read its sums
#elif PARTS > 1
  if (!LastToArrive(&counters[blockIdx.x / PARTS], PARTS)) return;
  for (int i = threadIdx.x; i < kTile; i += THREADS) {
    const long long mine = first_column + i;
    if (mine >= columns) break;
    float sum = 0;
#pragma unroll 8
    for (int p = 0; p < PARTS; ++p) sum += __ldcg(&parts[p * columns + mine]);
    y[mine] = FromFloat(sum);
  }
#endif
}

#endif
