// out[x][y] = in[y][x] of a height x width matrix of f32.

#define THREADS (BLOCK_X * BLOCK_Y)
#define PITCH (TILE_X + PAD)

extern "C" __global__ void __launch_bounds__(THREADS)
    kernel(const float* __restrict__ in, const float* __restrict__ unused_in,
           float* __restrict__ out, int width, int height, int unused) {
  const int tx = threadIdx.x % BLOCK_X;
  const int ty = threadIdx.x / BLOCK_X;
#if ORDER == 0  // along x first
  const int block_x = blockIdx.x;
  const int block_y = blockIdx.y;
#elif ORDER == 1  // along y first
  const int linear = blockIdx.y * gridDim.x + blockIdx.x;
  const int block_x = linear / gridDim.y;
  const int block_y = linear % gridDim.y;
#else             // diagonally
  const int block_y = blockIdx.y;
  const int block_x = (blockIdx.x + blockIdx.y) % gridDim.x;
#endif
  const int first_x = block_x * TILE_X;
  const int first_y = block_y * TILE_Y;

#if USE_SHARED
  __shared__ float tile[TILE_Y][PITCH];
#pragma unroll
  for (int y = ty; y < TILE_Y; y += BLOCK_Y) {
#pragma unroll
    for (int x = tx; x < TILE_X; x += BLOCK_X) {
      if (first_x + x < width && first_y + y < height) {
        tile[y][x] = in[static_cast<size_t>(first_y + y) * width + first_x + x];
      }
    }
  }
  __syncthreads();
  // The same threads, now along the other side.
#pragma unroll
  for (int x = ty; x < TILE_X; x += BLOCK_Y) {
#pragma unroll
    for (int y = tx; y < TILE_Y; y += BLOCK_X) {
      if (first_x + x < width && first_y + y < height) {
        float* const to =
            out + static_cast<size_t>(first_x + x) * height + first_y + y;
#if STREAM
        __stcs(to, tile[y][x]);
#else
        *to = tile[y][x];
#endif
      }
    }
  }
#else
#pragma unroll
  for (int y = ty; y < TILE_Y; y += BLOCK_Y) {
#pragma unroll
    for (int x = tx; x < TILE_X; x += BLOCK_X) {
      if (first_x + x < width && first_y + y < height) {
        const float value =
            in[static_cast<size_t>(first_y + y) * width + first_x + x];
        float* const to =
            out + static_cast<size_t>(first_x + x) * height + first_y + y;
#if STREAM
        __stcs(to, value);
#else
        *to = value;
#endif
      }
    }
  }
#endif
}
