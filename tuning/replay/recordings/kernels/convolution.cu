// out[y][x] = sum over i, j of in[y + i][x + j] * filter[i][j]; the input is
// FILTER - 1 wider and higher than the output. No launch bounds: a
// config may need more registers than its block can have.

#define FILTER 9
#define AREA_X (BLOCK_X * TILE_X)
#define AREA_Y (BLOCK_Y * TILE_Y)
#define SHARED_X (AREA_X + FILTER - 1 + USE_PADDING)
#define SHARED_Y (AREA_Y + FILTER - 1)

extern "C" __global__ void kernel(const float* in, const float* filter,
                                  float* out, int width, int height,
                                  int unused) {
  const int tx = threadIdx.x % BLOCK_X;
  const int ty = threadIdx.x / BLOCK_X;
  const int first_x = blockIdx.x * AREA_X;
  const int first_y = blockIdx.y * AREA_Y;
  const int pitch = width + FILTER - 1;
  const int rows = height + FILTER - 1;

#if SHARED_FILTER
  __shared__ float weights[FILTER * FILTER];
  for (int i = threadIdx.x; i < FILTER * FILTER; i += BLOCK_X * BLOCK_Y) {
    weights[i] = filter[i];
  }
#else
  const float* const __restrict__ weights = filter;
#endif

#if USE_SHARED
  __shared__ float tile[SHARED_Y][SHARED_X];
#pragma unroll
  for (int y = ty; y < SHARED_Y; y += BLOCK_Y) {
#pragma unroll
    for (int x = tx; x < AREA_X + FILTER - 1; x += BLOCK_X) {
      const int from_y = min(first_y + y, rows - 1);
      const int from_x = min(first_x + x, pitch - 1);
      tile[y][x] = in[from_y * pitch + from_x];
    }
  }
#endif
#if USE_SHARED || SHARED_FILTER
  __syncthreads();
#endif

  float sum[TILE_Y][TILE_X];
#pragma unroll
  for (int y = 0; y < TILE_Y; ++y) {
#pragma unroll
    for (int x = 0; x < TILE_X; ++x) sum[y][x] = 0;
  }

#pragma unroll UNROLL_Y
  for (int i = 0; i < FILTER; ++i) {
#pragma unroll
    for (int j = 0; j < FILTER; ++j) {
#if SHARED_FILTER
      const float weight = weights[i * FILTER + j];
#else
      const float weight = __ldg(weights + i * FILTER + j);
#endif
#pragma unroll
      for (int y = 0; y < TILE_Y; ++y) {
#pragma unroll
        for (int x = 0; x < TILE_X; ++x) {
#if USE_SHARED
          const float value = tile[ty + y * BLOCK_Y + i][tx + x * BLOCK_X + j];
#else
          const int from_y = min(first_y + ty + y * BLOCK_Y + i, rows - 1);
          const int from_x = min(first_x + tx + x * BLOCK_X + j, pitch - 1);
#if READ_ONLY
          const float value = __ldg(in + from_y * pitch + from_x);
#else
          const float value = in[from_y * pitch + from_x];
#endif
#endif
          sum[y][x] += value * weight;
        }
      }
    }
  }

#pragma unroll
  for (int y = 0; y < TILE_Y; ++y) {
#pragma unroll
    for (int x = 0; x < TILE_X; ++x) {
      const int to_x = first_x + tx + x * BLOCK_X;
      const int to_y = first_y + ty + y * BLOCK_Y;
      if (to_x < width && to_y < height) out[to_y * width + to_x] = sum[y][x];
    }
  }
}
