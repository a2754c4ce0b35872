// One kernel for each cause; they compute the same (planted.cc).
//
// Macros: CAUSE_* one of those below; DEPTH of the polynomial; AMOUNT of the
// cause; THREADS of a block; SHORT_ROWS for rows of at most 32 elements.

#include "predecessors.cuh"

typedef unsigned int uint32_t;

struct Problem {
  const float* x;
  float* y;
  float* s;
  long long rows, cols;
};

__device__ __forceinline__ float F(float x) {
  float v = x;
#pragma unroll 4
  for (int step = 0; step < DEPTH; ++step) v = v * x * .5f + .5f;
  return v;
}

__device__ __forceinline__ float4 F(float4 x) {
  float4 v = x;
#pragma unroll 4
  for (int step = 0; step < DEPTH; ++step) {
    v.x = v.x * x.x * .5f + .5f;
    v.y = v.y * x.y * .5f + .5f;
    v.z = v.z * x.z * .5f + .5f;
    v.w = v.w * x.w * .5f + .5f;
  }
  return v;
}

__device__ __forceinline__ float SumOf(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

__device__ __forceinline__ float WarpSum(float sum) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  }
  return sum;
}

__device__ __forceinline__ float BlockSum(float sum) {
  __shared__ float sums[THREADS / 32];
  sum = WarpSum(sum);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int i = 0; i < THREADS / 32; ++i) total += sums[i];
  return total;
}

// A row by the whole block, 16 bytes at a time.
__device__ __forceinline__ void Row(const Problem& p, long long row) {
  const float4* const x = (const float4*)(p.x + row * p.cols);
  float4* const y = (float4*)(p.y + row * p.cols);
  float sum = 0;
#pragma unroll 2
  for (long long c = threadIdx.x; c < p.cols / 4; c += THREADS) {
    const float4 v = F(x[c]);
    y[c] = v;
    sum += SumOf(v);
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.s[row] = sum;
}

// A lane has a row of its own. Rows of a few elements lie side by side in the
// lines that a warp reads.
__device__ __forceinline__ void RowOfLane(const Problem& p) {
  const long long row = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (row >= p.rows) return;
  float sum = 0;
  for (long long c = 0; c < p.cols; ++c) {
    const float v = F(p.x[row * p.cols + c]);
    p.y[row * p.cols + c] = v;
    sum += v;
  }
  p.s[row] = sum;
}

#if defined(CAUSE_STRIDED)

// The 32 lanes of a warp read 32 lines where rows are long.
__device__ void Run(const Problem& p) { RowOfLane(p); }

#elif defined(CAUSE_UNUSED_LANES)

// A warp has a row, and short rows leave lanes without an element.
__device__ void Run(const Problem& p) {
  const int lane = threadIdx.x % 32;
  const long long row =
      (long long)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  if (row >= p.rows) return;
  float sum = 0;
  for (long long c = lane; c < p.cols; c += 32) {
    const float v = F(p.x[row * p.cols + c]);
    p.y[row * p.cols + c] = v;
    sum += v;
  }
  sum = WarpSum(sum);
  if (lane == 0) p.s[row] = sum;
}

#elif defined(SHORT_ROWS)  // healthy

__device__ void Run(const Problem& p) { RowOfLane(p); }

#elif defined(CAUSE_BYTES)

// Data of any alignment, byte by byte.
__device__ __forceinline__ float LoadBytes(const volatile unsigned char* from) {
  return __uint_as_float((uint32_t)from[0] | (uint32_t)from[1] << 8 |
                         (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24);
}
__device__ __forceinline__ void StoreBytes(volatile unsigned char* to,
                                           float value) {
  const uint32_t bits = __float_as_uint(value);
  to[0] = bits;
  to[1] = bits >> 8;
  to[2] = bits >> 16;
  to[3] = bits >> 24;
}
__device__ void Run(const Problem& p) {
  const long long row = blockIdx.x;
  float sum = 0;
  for (long long c = threadIdx.x; c < p.cols; c += THREADS) {
    const float v =
        F(LoadBytes((const unsigned char*)(p.x + row * p.cols + c)));
    StoreBytes((unsigned char*)(p.y + row * p.cols + c), v);
    sum += v;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.s[row] = sum;
}

#elif defined(CAUSE_BANK_CONFLICTS)

// A warp turns 32 rows so that each lane has one, in a tile without padding.
__device__ void Run(const Problem& p) {
  __shared__ float tiles[THREADS / 32][32][32];
  volatile float(*const tile)[32] = tiles[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  const long long row =
      ((long long)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * 32;
  if (row >= p.rows) return;
  float sum = 0;
  for (long long c = 0; c < p.cols; c += 32) {
#pragma unroll 8
    for (int i = 0; i < 32; ++i) {
      tile[i][lane] = p.x[(row + i) * p.cols + c + lane];
    }
    __syncwarp();
#pragma unroll 8
    for (int i = 0; i < 32; ++i) {
      const float v = F(tile[lane][i]);
      tile[lane][i] = v;
      sum += v;
    }
    __syncwarp();
#pragma unroll 8
    for (int i = 0; i < 32; ++i) {
      p.y[(row + i) * p.cols + c + lane] = tile[i][lane];
    }
    __syncwarp();
  }
  p.s[row + lane] = sum;
}

#elif defined(CAUSE_SPILLS)

// Far more values at a time than registers.
constexpr int kValues = 32 + 4 * AMOUNT;
__device__ void Run(const Problem& p) {
  const long long row = blockIdx.x;
  const float* const x = p.x + row * p.cols;
  float* const y = p.y + row * p.cols;
  float sum = 0;
  long long c = threadIdx.x;
  for (; c + (kValues - 1) * THREADS < p.cols; c += kValues * THREADS) {
    float a[kValues], v[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) v[i] = a[i] = x[c + i * THREADS];
#pragma unroll 1
    for (int step = 0; step < DEPTH; ++step) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) v[i] = v[i] * a[i] * .5f + .5f;
    }
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      y[c + i * THREADS] = v[i];
      sum += v[i];
    }
  }
  for (; c < p.cols; c += THREADS) {
    const float v = F(x[c]);
    y[c] = v;
    sum += v;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.s[row] = sum;
}

#elif defined(CAUSE_LOCAL_ARRAYS)

// A history of values in an array that no register can be.
constexpr int kHistory = 64 * AMOUNT;
__device__ void Run(const Problem& p) {
  float history[kHistory];
  const long long row = blockIdx.x;
  // The compiler cannot know that what is read was just written.
  const uint32_t zero = (uint32_t)(p.rows >> 40);
  float sum = 0;
  for (long long c = threadIdx.x; c < p.cols; c += THREADS) {
    const float x = p.x[row * p.cols + c];
    uint32_t at = (uint32_t)(c + row) % kHistory;
    history[at] = x;
#pragma unroll 1
    for (int step = 0; step < DEPTH; ++step) {
      const float v = history[at ^ zero] * x * .5f + .5f;
      at = (at * 5 + 1) % kHistory;
      history[at] = v;
    }
    const float v = history[at ^ zero];
    p.y[row * p.cols + c] = v;
    sum += v;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.s[row] = sum;
}

#elif defined(CAUSE_LATENCY)

// Few warps, and each value after the one before it.
__device__ void Run(const Problem& p) {
  for (long long row = blockIdx.x; row < p.rows; row += gridDim.x) {
    float sum = 0;
#pragma unroll 1
    for (long long c = threadIdx.x; c < p.cols; c += THREADS) {
      const float v = F(p.x[row * p.cols + c]);
      p.y[row * p.cols + c] = v;
      sum += v;
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) p.s[row] = sum;
  }
}

#elif defined(CAUSE_ATOMICS)

// Every element is added to its row's sum by itself.
__device__ void Run(const Problem& p) {
  const long long row = blockIdx.x;
  for (long long c = threadIdx.x; c < p.cols; c += THREADS) {
    const float v = F(p.x[row * p.cols + c]);
    p.y[row * p.cols + c] = v;
    atomicAdd(p.s + row, v);
  }
}
#define ZEROES_SUMS

#elif defined(CAUSE_BARRIERS)

// The block meets after each step of each value.
__device__ void Run(const Problem& p) {
  const long long row = blockIdx.x;
  float sum = 0;
  for (long long first = 0; first < p.cols; first += THREADS) {
    const long long c = first + threadIdx.x;
    const float x = c < p.cols ? p.x[row * p.cols + c] : 0;
    float v = x;
#pragma unroll 1
    for (int step = 0; step < DEPTH; ++step) {
      v = v * x * .5f + .5f;
      __syncthreads();
    }
    if (c < p.cols) {
      p.y[row * p.cols + c] = v;
      sum += v;
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.s[row] = sum;
}

#elif defined(CAUSE_PASSES)

// One step of the polynomial at a time, over everything. Every thread keeps to
// its own elements, and all threads pass at the same time.
__device__ void Run(const Problem& p) {
  const long long vectors = p.rows * p.cols / 4;
  const float4* const x = (const float4*)p.x;
  const long long first = (long long)blockIdx.x * THREADS + threadIdx.x;
  const long long threads = (long long)gridDim.x * THREADS;
  for (int step = 0; step < DEPTH; ++step) {
#pragma unroll 4
    for (long long i = first; i < vectors; i += threads) {
      const float4 a = x[i];
      float4 v = step == 0 ? a : ((const float4*)p.y)[i];
      v.x = v.x * a.x * .5f + .5f;
      v.y = v.y * a.y * .5f + .5f;
      v.z = v.z * a.z * .5f + .5f;
      v.w = v.w * a.w * .5f + .5f;
      ((float4*)p.y)[i] = v;
    }
    asm volatile("" ::: "memory");
  }
}
extern "C" __global__ void sums(const float* y, float* s, long long cols) {
  AwaitPredecessors();
  const float4* const from = (const float4*)(y + blockIdx.x * cols);
  float sum = 0;
  for (long long c = threadIdx.x; c < cols / 4; c += THREADS) {
    sum += SumOf(from[c]);
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) s[blockIdx.x] = sum;
}

#else  // healthy, few_blocks and tail: they differ in their grids

__device__ void Run(const Problem& p) {
#if defined(CAUSE_TAIL)
  extern __shared__ float room[];  // so that a multiprocessor holds one block
  if (p.cols == 0) p.s[0] = room[threadIdx.x];
#endif
  for (long long row = blockIdx.x; row < p.rows; row += gridDim.x) Row(p, row);
}

#endif

#if defined(ZEROES_SUMS)
extern "C" __global__ void zero_sums(float* s, long long rows) {
  AwaitPredecessors();
  for (long long row = threadIdx.x; row < rows; row += blockDim.x) s[row] = 0;
}
#endif

#if defined(CAUSE_SPILLS)
extern "C" __global__ void __launch_bounds__(THREADS, 2048 / THREADS)
#else
extern "C" __global__ void __launch_bounds__(THREADS)
#endif
    planted(const float* x, float* y, float* s, long long rows,
            long long cols) {
  AwaitPredecessors();
  Run({x, y, s, rows, cols});
}
