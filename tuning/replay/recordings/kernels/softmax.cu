// Softmax of each row. THREADS_X threads share a row, a block does ROWS rows.
// KEEP_SHARED: the row stays in shared memory between the passes. ONLINE: the
// maximum and the sum in one pass.

#define THREADS (THREADS_X * ROWS)
#define WARPS_X ((THREADS_X + 31) / 32)

template <int kWidth>
struct VecOf;
template <>
struct VecOf<1> {
  using Type = float;
};
template <>
struct VecOf<2> {
  using Type = float2;
};
template <>
struct VecOf<4> {
  using Type = float4;
};
using Vec = VecOf<VEC>::Type;

union Pack {
  Vec vec;
  float values[VEC];
};

__device__ __forceinline__ float Exp(float x) {
#if FAST_EXP
  return __expf(x);
#else
  return expf(x);
#endif
}

__device__ __forceinline__ void Merge(float& max_a, float& sum_a, float max_b,
                                      float sum_b) {
  const float larger = fmaxf(max_a, max_b);
  sum_a = sum_a * Exp(max_a - larger) + sum_b * Exp(max_b - larger);
  max_a = larger;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    kernel(const float* __restrict__ in, const float* __restrict__ unused_in,
           float* __restrict__ out, int rows, int cols, int unused) {
  extern __shared__ __align__(16) float kept[];
  __shared__ float warp_max[ROWS][WARPS_X];
  __shared__ float warp_sum[ROWS][WARPS_X];
  const int tx = threadIdx.x % THREADS_X;
  const int ty = threadIdx.x / THREADS_X;
  const int row = blockIdx.x * ROWS + ty;
  const Vec* const from =
      reinterpret_cast<const Vec*>(in + static_cast<size_t>(row) * cols);
  Vec* const to = reinterpret_cast<Vec*>(out + static_cast<size_t>(row) * cols);
  Vec* const keep = reinterpret_cast<Vec*>(kept + ty * cols);
  const int count = cols / VEC;

  float max = -1e30f;
  float sum = 0;
#pragma unroll UNROLL
  for (int i = tx; i < count; i += THREADS_X) {
    Pack pack;
#if STREAM
    pack.vec = __ldcs(from + i);
#else
    pack.vec = from[i];
#endif
#if KEEP_SHARED
    keep[i] = pack.vec;
#endif
#if ONLINE
    float local = pack.values[0];
#pragma unroll
    for (int v = 1; v < VEC; ++v) local = fmaxf(local, pack.values[v]);
    if (local > max) {
      sum *= Exp(max - local);
      max = local;
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) sum += Exp(pack.values[v] - max);
#else
#pragma unroll
    for (int v = 0; v < VEC; ++v) max = fmaxf(max, pack.values[v]);
#endif
  }

#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other_max = __shfl_xor_sync(0xffffffffu, max, offset);
#if ONLINE
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, offset);
    Merge(max, sum, other_max, other_sum);
#else
    max = fmaxf(max, other_max);
#endif
  }
#if WARPS_X > 1
  if (tx % 32 == 0) {
    warp_max[ty][tx / 32] = max;
    warp_sum[ty][tx / 32] = sum;
  }
  __syncthreads();
  max = warp_max[ty][0];
  sum = warp_sum[ty][0];
#pragma unroll
  for (int w = 1; w < WARPS_X; ++w) {
#if ONLINE
    Merge(max, sum, warp_max[ty][w], warp_sum[ty][w]);
#else
    max = fmaxf(max, warp_max[ty][w]);
#endif
  }
#endif

#if !ONLINE
  sum = 0;
#pragma unroll UNROLL
  for (int i = tx; i < count; i += THREADS_X) {
    Pack pack;
#if KEEP_SHARED
    pack.vec = keep[i];
#else
    pack.vec = from[i];
#endif
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      pack.values[v] = Exp(pack.values[v] - max);
      sum += pack.values[v];
    }
#if KEEP_SHARED
    keep[i] = pack.vec;
#endif
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  }
#if WARPS_X > 1
  if (tx % 32 == 0) warp_sum[ty][tx / 32] = sum;
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int w = 0; w < WARPS_X; ++w) sum += warp_sum[ty][w];
#endif
#endif

  const float scale = 1 / sum;
#pragma unroll UNROLL
  for (int i = tx; i < count; i += THREADS_X) {
    Pack pack;
#if KEEP_SHARED
    pack.vec = keep[i];
#else
    pack.vec = from[i];
#endif
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
#if KEEP_SHARED && !ONLINE
      pack.values[v] *= scale;
#else
      pack.values[v] = Exp(pack.values[v] - max) * scale;
#endif
    }
#if STREAM
    __stcs(to + i, pack.vec);
#else
    to[i] = pack.vec;
#endif
  }
}
