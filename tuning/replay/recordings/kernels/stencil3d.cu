// A star of radius 2 over a grid of nx x ny x nz; beyond its sides the values
// repeat. A block marches MARCH_Z planes along z. USE_QUEUE: the column along z
// is kept in registers. USE_SHARED: the plane is kept in shared memory.

#define RADIUS 2
#define AREA_X (BLOCK_X * TILE_X)
#define AREA_Y (BLOCK_Y * TILE_Y)

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    kernel(const float* __restrict__ in, const float* __restrict__ unused,
           float* __restrict__ out, int nx, int ny, int nz) {
#if USE_SHARED
  __shared__ float plane[AREA_Y + 2 * RADIUS][AREA_X + 2 * RADIUS];
#endif
  const float weights[RADIUS + 1] = {0.4f, 0.12f, -0.02f};
  const int tx = threadIdx.x % BLOCK_X;
  const int ty = threadIdx.x / BLOCK_X;
  const int first_x = blockIdx.x * AREA_X;
  const int first_y = blockIdx.y * AREA_Y;
  const int first_z = blockIdx.z * MARCH_Z;
  const auto at = [=](int z, int y, int x) {
    z = min(max(z, 0), nz - 1);
    y = min(max(y, 0), ny - 1);
    x = min(max(x, 0), nx - 1);
    return in[(z * ny + y) * nx + x];
  };

#if USE_QUEUE
  float queue[TILE_Y][TILE_X][2 * RADIUS + 1];
#pragma unroll
  for (int i = 0; i < TILE_Y; ++i) {
#pragma unroll
    for (int j = 0; j < TILE_X; ++j) {
#pragma unroll
      for (int r = 1; r <= 2 * RADIUS; ++r) {
        queue[i][j][r] =
            at(first_z + r - 1 - RADIUS, first_y + ty + i * BLOCK_Y,
               first_x + tx + j * BLOCK_X);
      }
    }
  }
#endif

#pragma unroll UNROLL_Z
  for (int step = 0; step < MARCH_Z; ++step) {
    const int z = first_z + step;
    if (z >= nz) break;
#if USE_SHARED
    __syncthreads();
    for (int y = ty; y < AREA_Y + 2 * RADIUS; y += BLOCK_Y) {
      for (int x = tx; x < AREA_X + 2 * RADIUS; x += BLOCK_X) {
        plane[y][x] = at(z, first_y + y - RADIUS, first_x + x - RADIUS);
      }
    }
    __syncthreads();
#endif
#pragma unroll
    for (int i = 0; i < TILE_Y; ++i) {
#pragma unroll
      for (int j = 0; j < TILE_X; ++j) {
        const int local_x = tx + j * BLOCK_X;
        const int local_y = ty + i * BLOCK_Y;
        const int x = first_x + local_x;
        const int y = first_y + local_y;
#if USE_QUEUE
        float* const column = queue[i][j];
#pragma unroll
        for (int r = 0; r < 2 * RADIUS; ++r) column[r] = column[r + 1];
        column[2 * RADIUS] = at(z + RADIUS, y, x);
        float sum = weights[0] * column[RADIUS];
#else
        float sum = weights[0] * at(z, y, x);
#endif
#pragma unroll
        for (int r = 1; r <= RADIUS; ++r) {
#if USE_QUEUE
          const float along_z = column[RADIUS - r] + column[RADIUS + r];
#else
          const float along_z = at(z - r, y, x) + at(z + r, y, x);
#endif
#if USE_SHARED
          const float along_y = plane[local_y + RADIUS - r][local_x + RADIUS] +
                                plane[local_y + RADIUS + r][local_x + RADIUS];
          const float along_x = plane[local_y + RADIUS][local_x + RADIUS - r] +
                                plane[local_y + RADIUS][local_x + RADIUS + r];
#else
          const float along_y = at(z, y - r, x) + at(z, y + r, x);
          const float along_x = at(z, y, x - r) + at(z, y, x + r);
#endif
          sum += weights[r] * (along_x + along_y + along_z);
        }
        if (x < nx && y < ny) out[(z * ny + y) * nx + x] = sum;
      }
    }
  }
}
