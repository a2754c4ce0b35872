// STEPS time steps of heat spreading over a chip (as Rodinia's hotspot): a
// block loads its area and a rim of STEPS cells and shrinks by one cell a step.
// The host launches it STEPS_IN_ALL / STEPS times.

#define AREA_X (BLOCK_X * TILE_X)
#define AREA_Y (BLOCK_Y * TILE_Y)
#define HALO_X (AREA_X + 2 * STEPS)
#define HALO_Y (AREA_Y + 2 * STEPS)

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y, MIN_BLOCKS)
    kernel(const float* __restrict__ in, const float* __restrict__ power,
           float* __restrict__ out, int width, int height, int unused) {
  __shared__ float tiles[2][HALO_Y][HALO_X];
#if SHARED_POWER
  __shared__ float tile_power[HALO_Y][HALO_X];
#endif
  const int tx = threadIdx.x % BLOCK_X;
  const int ty = threadIdx.x / BLOCK_X;
  // Cell (0, 0) of the tile in the grid.
  const int base_x = static_cast<int>(blockIdx.x) * AREA_X - STEPS;
  const int base_y = static_cast<int>(blockIdx.y) * AREA_Y - STEPS;

  for (int y = ty; y < HALO_Y; y += BLOCK_Y) {
    for (int x = tx; x < HALO_X; x += BLOCK_X) {
      const int gx = min(max(base_x + x, 0), width - 1);
      const int gy = min(max(base_y + y, 0), height - 1);
      tiles[0][y][x] = in[gy * width + gx];
#if SHARED_POWER
      tile_power[y][x] = power[gy * width + gx];
#endif
    }
  }
  __syncthreads();

#if UNROLL_STEPS
#pragma unroll
#else
#pragma unroll 1
#endif
  for (int step = 1; step <= STEPS; ++step) {
    const float(*from)[HALO_X] = tiles[(step + 1) % 2];
    float(*to)[HALO_X] = tiles[step % 2];
    for (int y = ty + step; y < HALO_Y - step; y += BLOCK_Y) {
      const int gy = base_y + y;
      if (gy < 0 || gy >= height) continue;
      for (int x = tx + step; x < HALO_X - step; x += BLOCK_X) {
        const int gx = base_x + x;
        if (gx < 0 || gx >= width) continue;
        const float center = from[y][x];
        const float north = gy > 0 ? from[y - 1][x] : center;
        const float south = gy < height - 1 ? from[y + 1][x] : center;
        const float west = gx > 0 ? from[y][x - 1] : center;
        const float east = gx < width - 1 ? from[y][x + 1] : center;
#if SHARED_POWER
        const float heat = tile_power[y][x];
#else
        const float heat = power[gy * width + gx];
#endif
        const float value =
            center + 0.05f * heat + 0.2f * (north + south - 2 * center) +
            0.2f * (west + east - 2 * center) + 0.01f * (0.5f - center);
        if (step == STEPS) {
          out[gy * width + gx] = value;
        } else {
          to[y][x] = value;
        }
      }
    }
    __syncthreads();
  }
}
