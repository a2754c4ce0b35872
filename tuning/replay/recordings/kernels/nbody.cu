// Accelerations of n bodies on one another. `aos` holds (x, y, z, mass) body by
// body, `soa` the same as four arrays; out is three arrays. SPLIT threads share
// the work for the same bodies. No launch bounds: a config may need more
// registers than its block can have.

#define BODIES_PER_BLOCK (BLOCK / SPLIT * BODIES)

__device__ __forceinline__ float4 Load(const float4* aos, const float* soa,
                                       int n, int i) {
#if USE_SOA
  return make_float4(soa[i], soa[n + i], soa[2 * n + i], soa[3 * n + i]);
#else
  return aos[i];
#endif
}

extern "C" __global__ void kernel(const float4* __restrict__ aos,
                                  const float* __restrict__ soa,
                                  float* __restrict__ out, int n, int unused1,
                                  int unused2) {
#if USE_SHARED
  __shared__ float4 tile[BLOCK];
#endif
  const int lane = threadIdx.x % (BLOCK / SPLIT);
  const int part = threadIdx.x / (BLOCK / SPLIT);
  const int first = blockIdx.x * BODIES_PER_BLOCK + lane;

  float4 self[BODIES];
  float3 sum[BODIES];
#pragma unroll
  for (int b = 0; b < BODIES; ++b) {
    self[b] = Load(aos, soa, n, first + b * (BLOCK / SPLIT));
    sum[b] = make_float3(0, 0, 0);
  }

#if USE_SHARED
  for (int j0 = 0; j0 < n; j0 += BLOCK) {
    tile[threadIdx.x] = Load(aos, soa, n, j0 + threadIdx.x);
    __syncthreads();
#pragma unroll UNROLL
    for (int j = 0; j < BLOCK / SPLIT; ++j) {
      const float4 other = tile[part * (BLOCK / SPLIT) + j];
#else
  {
#pragma unroll UNROLL
    for (int j = part * (n / SPLIT); j < (part + 1) * (n / SPLIT); ++j) {
      const float4 other = Load(aos, soa, n, j);
#endif
#pragma unroll
      for (int b = 0; b < BODIES; ++b) {
        const float dx = other.x - self[b].x;
        const float dy = other.y - self[b].y;
        const float dz = other.z - self[b].z;
        const float square = dx * dx + dy * dy + dz * dz + 0.01f;
#if FAST_RSQRT
        const float inverse = rsqrtf(square);
#else
        const float inverse = 1.0f / sqrtf(square);
#endif
        const float scale = other.w * inverse * inverse * inverse;
        sum[b].x += dx * scale;
        sum[b].y += dy * scale;
        sum[b].z += dz * scale;
      }
    }
#if USE_SHARED
    __syncthreads();
#endif
  }

#if SPLIT > 1
  __shared__ float3 parts[BLOCK];
#pragma unroll
  for (int b = 0; b < BODIES; ++b) {
    __syncthreads();
    parts[threadIdx.x] = sum[b];
    __syncthreads();
    if (part == 0) {
#pragma unroll
      for (int p = 1; p < SPLIT; ++p) {
        const float3 more = parts[p * (BLOCK / SPLIT) + lane];
        sum[b].x += more.x;
        sum[b].y += more.y;
        sum[b].z += more.z;
      }
    }
  }
#endif
  if (part == 0) {
#pragma unroll
    for (int b = 0; b < BODIES; ++b) {
      const int i = first + b * (BLOCK / SPLIT);
      out[i] = sum[b].x;
      out[n + i] = sum[b].y;
      out[2 * n + i] = sum[b].z;
    }
  }
}
