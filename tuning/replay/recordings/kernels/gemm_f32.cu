// C[m][n] = sum over k of a[k][m] * b[k][n]; m, n, k are multiples of the
// tiles. A thread owns TILE_M/THREADS_M x TILE_N/THREADS_N results, in groups
// of VEC_M x VEC_N neighbours.

#define ROWS (TILE_M / THREADS_M)
#define COLS (TILE_N / THREADS_N)
#define THREADS (THREADS_M * THREADS_N)

template <int kWidth>
struct Vec;
template <>
struct Vec<1> {
  using Type = float;
};
template <>
struct Vec<2> {
  using Type = float2;
};
template <>
struct Vec<4> {
  using Type = float4;
};

template <int kWidth>
__device__ __forceinline__ void Copy(float* to, const float* from) {
  using Type = typename Vec<kWidth>::Type;
  *reinterpret_cast<Type*>(to) = *reinterpret_cast<const Type*>(from);
}

// A TILE_K x kSize tile of a row-major matrix, by kAcross threads a row.
template <int kSize, int kAcross, int kVec, int kStride>
__device__ __forceinline__ void LoadTile(float* tile, const float* from,
                                         int pitch) {
  const int x = threadIdx.x % kAcross * kVec;
  const int y = threadIdx.x / kAcross;
#pragma unroll
  for (int k = 0; k < TILE_K; k += THREADS / kAcross) {
#pragma unroll
    for (int i = 0; i < kSize; i += kAcross * kVec) {
      Copy<kVec>(tile + (k + y) * kStride + i + x,
                 from + static_cast<size_t>(k + y) * pitch + i + x);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    kernel(const float* __restrict__ a, const float* __restrict__ b,
           float* __restrict__ c, int m, int n, int k) {
#if SHARED_A
  __shared__ __align__(16) float tile_a[TILE_K * TILE_M];
#endif
#if SHARED_B
  __shared__ __align__(16) float tile_b[TILE_K * TILE_N];
#endif
  const int thread_n = threadIdx.x % THREADS_N;
  const int thread_m = threadIdx.x / THREADS_N;
  const int first_m = blockIdx.y * TILE_M;
  const int first_n = blockIdx.x * TILE_N;

  float sum[ROWS][COLS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < COLS; ++j) sum[i][j] = 0;
  }

  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    const float* from_a = a + static_cast<size_t>(k0) * m + first_m;
    const float* from_b = b + static_cast<size_t>(k0) * n + first_n;
#if SHARED_A
    LoadTile<TILE_M, LOAD_M, VEC_M, TILE_M>(tile_a, from_a, m);
    const float* row_a = tile_a;
    const int pitch_a = TILE_M;
#else
    const float* row_a = from_a;
    const int pitch_a = m;
#endif
#if SHARED_B
    LoadTile<TILE_N, LOAD_N, VEC_N, TILE_N>(tile_b, from_b, n);
    const float* row_b = tile_b;
    const int pitch_b = TILE_N;
#else
    const float* row_b = from_b;
    const int pitch_b = n;
#endif
#if SHARED_A || SHARED_B
    __syncthreads();
#endif
#pragma unroll UNROLL_K
    for (int kk = 0; kk < TILE_K; ++kk) {
      __align__(16) float va[ROWS];
      __align__(16) float vb[COLS];
#pragma unroll
      for (int i = 0; i < ROWS; i += VEC_M) {
        Copy<VEC_M>(va + i, row_a + static_cast<size_t>(kk) * pitch_a +
                                i * THREADS_M + thread_m * VEC_M);
      }
#pragma unroll
      for (int j = 0; j < COLS; j += VEC_N) {
        Copy<VEC_N>(vb + j, row_b + static_cast<size_t>(kk) * pitch_b +
                                j * THREADS_N + thread_n * VEC_N);
      }
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < COLS; ++j) sum[i][j] += va[i] * vb[j];
      }
    }
#if SHARED_A || SHARED_B
    __syncthreads();
#endif
  }

#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int row =
        first_m + i / VEC_M * VEC_M * THREADS_M + thread_m * VEC_M + i % VEC_M;
#pragma unroll
    for (int j = 0; j < COLS; j += VEC_N) {
      __align__(16) float group[VEC_N];
#pragma unroll
      for (int v = 0; v < VEC_N; ++v) group[v] = sum[i][j + v];
      Copy<VEC_N>(c + static_cast<size_t>(row) * n + first_n + j * THREADS_N +
                      thread_n * VEC_N,
                  group);
    }
  }
}
