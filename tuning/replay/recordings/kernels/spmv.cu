// out = A x of a sparse matrix in compressed rows. `structure` is the rows + 1
// offsets and then the columns; `values` is x (rows values) and then the
// entries. THREADS_PER_ROW threads share a row and do ROWS_PER_GROUP rows in
// turn: neighbours (CONSECUTIVE), or rows a grid apart. HINT: 0: plain loads,
// 1: x through __ldg, 2: entries streamed.

#define GROUPS (BLOCK / THREADS_PER_ROW)

template <typename T>
__device__ __forceinline__ T LoadEntry(const T* from) {
#if HINT == 2
  return __ldcs(from);
#else
  return *from;
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const int* structure, const float* values, float* out, int rows,
           int unused1, int unused2) {
  const int* const columns = structure + rows + 1;
  const float* const x = values;
  const float* const entries = values + rows;
  const int lane = threadIdx.x % THREADS_PER_ROW;
  const int group = blockIdx.x * GROUPS + threadIdx.x / THREADS_PER_ROW;
#if SHARED_SUM
  __shared__ float partial[BLOCK];
#endif

  for (int r = 0; r < ROWS_PER_GROUP; ++r) {
#if CONSECUTIVE
    const int row = group * ROWS_PER_GROUP + r;
#else
    const int row = group + r * gridDim.x * GROUPS;
#endif
    float sum = 0;
    if (row < rows) {
      const int end = structure[row + 1];
#pragma unroll UNROLL
      for (int i = structure[row] + lane; i < end; i += THREADS_PER_ROW) {
        const int column = LoadEntry(columns + i);
#if HINT == 1
        const float value = __ldg(x + column);
#else
        const float value = x[column];
#endif
        sum += LoadEntry(entries + i) * value;
      }
    }
#if SHARED_SUM
    partial[threadIdx.x] = sum;
#pragma unroll
    for (int offset = THREADS_PER_ROW / 2; offset > 0; offset /= 2) {
      __syncwarp();
      if (lane < offset) partial[threadIdx.x] += partial[threadIdx.x + offset];
    }
    __syncwarp();
    sum = partial[threadIdx.x];
#else
#pragma unroll
    for (int offset = THREADS_PER_ROW / 2; offset > 0; offset /= 2) {
      sum += __shfl_down_sync(0xffffffffu, sum, offset, THREADS_PER_ROW);
    }
#endif
    if (lane == 0 && row < rows) out[row] = sum;
  }
}
