// Sums of x[rows, cols] on CUDA: over the columns (one sum per row), over the
// rows (one per column), and all of it as one long row. x is read once.
//
// Blocks that share sums leave their parts in memory; the last of them to
// arrive adds those up in order, so that results repeat. Of columns they can be
// a cluster: each adds up some columns of what all have in shared memory.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   ACROSS_ROWS 0|1; THREADS; LANES: threads side by side along a row, 32 to
//   THREADS, across rows from 8 on; VECTOR (elements per access, which divides
//   the columns); UNROLL (accesses in flight per thread); PARTS (blocks that
//   share sums); CLUSTER 0|1 (across rows: they are one, as Hopper has them).

#include "elements.cuh"

typedef Elements<VECTOR> Vector;

constexpr int kGroups = THREADS / LANES;  // rows side by side

// The workspace: a counter for all blocks that share sums, then their parts.
__device__ __forceinline__ float* PartsBehind(int* counters) {
  return (float*)(counters + (gridDim.x / PARTS + 63) / 64 * 64);
}

#if !ACROSS_ROWS

// The sum over the LANES threads of a row, in the first of them.
__device__ __forceinline__ float SumOfRow(float sum) {
  __shared__ float warps[THREADS / 32];
  sum = SumOfLanes<32>(sum);
  if (LANES == 32) return sum;
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
  const int lane = threadIdx.x % LANES;
  const long long first_row = (long long)(blockIdx.x / PARTS) * kGroups;
  const long long row = first_row + threadIdx.x / LANES;
  const int part = blockIdx.x % PARTS;
  const long long vectors = columns / VECTOR;
  const long long begin = vectors * part / PARTS;
  const long long end = row < rows ? vectors * (part + 1) / PARTS : begin;
  const Vector* const from = (const Vector*)(x + row * columns);
  float* const parts = PartsBehind(counters);
  float sums[UNROLL] = {};
  long long at = begin + lane;
  for (; at + (UNROLL - 1) * LANES < end; at += UNROLL * LANES) {
    Vector v[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) v[i] = Load(from + at + i * LANES);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      float values[VECTOR];
      ToFloats(v[i], values);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) sums[i] += values[j];
    }
  }
#pragma unroll
  for (int i = 0; i < UNROLL - 1; ++i) {
    if (at + i * LANES >= end) continue;
    float values[VECTOR];
    ToFloats(Load(from + at + i * LANES), values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sums[i] += values[j];
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

constexpr int kTile = LANES * VECTOR;                 // columns of a block
constexpr int kInWarp = LANES < 32 ? 32 / LANES : 1;  // groups of a warp

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
  __shared__ float groups[kGroups / kInWarp][kTile];
  const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const long long first_column = (long long)(blockIdx.x / PARTS) * kTile;
  const long long column = first_column + lane * VECTOR;
  const int part = blockIdx.x % PARTS;
  const long long begin = rows * part / PARTS;
  const long long end = column < columns ? rows * (part + 1) / PARTS : begin;
  float* const parts = PartsBehind(counters);
  float sums[VECTOR] = {};
  long long row = begin + group;
  for (; row + (UNROLL - 1) * kGroups < end; row += UNROLL * kGroups) {
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
    float values[VECTOR];
    ToFloats(Load((const Vector*)(x + row * columns + column)), values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sums[j] += values[j];
  }
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
  for (int i = threadIdx.x; i < kTile; i += THREADS) {
    const long long mine = first_column + i % LANES * VECTOR + i / LANES;
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups / kInWarp; ++g) sum += groups[g][i];
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
          : "r"(here + (i % VECTOR * LANES + i / VECTOR) * 4), "r"(from)
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
