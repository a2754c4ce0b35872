// c[m][n] (f32) = sum over k of a[m][k] * b[k][n] (f16) on the tensor cores:
// cp.async into STAGES shared tiles, ldmatrix, mma.sync m16n8k16. m, n, k are
// multiples of the tiles. PAD is in f16 values a row; GROUP_M tile rows are
// walked together, so that their tiles of b stay in the L2 cache.

#define THREADS (WARPS_M * WARPS_N * 32)
#define WARP_M (TILE_M / WARPS_M)
#define WARP_N (TILE_N / WARPS_N)
#define PITCH_A (TILE_K + PAD)
#define PITCH_B (TILE_N + PAD)
#define STAGE_A (TILE_M * PITCH_A)
#define STAGE_B (TILE_K * PITCH_B)

using Half = unsigned short;

__device__ __forceinline__ unsigned SharedAddress(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

template <int kRows, int kCols, int kPitch>
__device__ __forceinline__ void LoadTile(Half* tile, const Half* from,
                                         int pitch) {
#pragma unroll
  for (int i = 0; i < kRows * kCols / 8; i += THREADS) {
    const int chunk = i + threadIdx.x;
    const int row = chunk / (kCols / 8);
    const int col = chunk % (kCols / 8) * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     SharedAddress(tile + row * kPitch + col)),
                 "l"(from + static_cast<size_t>(row) * pitch + col)
                 : "memory");
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    kernel(const Half* __restrict__ a, const Half* __restrict__ b,
           float* __restrict__ c, int m, int n, int k) {
  extern __shared__ __align__(16) Half shared[];
  Half* const tiles_a = shared;
  Half* const tiles_b = shared + STAGES * STAGE_A;

  const int tiles_n = n / TILE_N;
  const int tiles_m = m / TILE_M;
  const int group = blockIdx.x / (GROUP_M * tiles_n);
  const int in_group = blockIdx.x % (GROUP_M * tiles_n);
  const int group_size = min(GROUP_M, tiles_m - group * GROUP_M);
  const int first_m = (group * GROUP_M + in_group % group_size) * TILE_M;
  const int first_n = in_group / group_size * TILE_N;

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int warp_m = warp / WARPS_N * WARP_M;
  const int warp_n = warp % WARPS_N * WARP_N;

  float sum[WARP_M / 16][WARP_N / 8][4];
#pragma unroll
  for (int i = 0; i < WARP_M / 16; ++i) {
#pragma unroll
    for (int j = 0; j < WARP_N / 8; ++j) {
#pragma unroll
      for (int v = 0; v < 4; ++v) sum[i][j][v] = 0;
    }
  }

  const Half* const from_a = a + static_cast<size_t>(first_m) * k;
  const Half* const from_b = b + first_n;
  const int steps = k / TILE_K;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) {
      LoadTile<TILE_M, TILE_K, PITCH_A>(tiles_a + s * STAGE_A,
                                        from_a + s * TILE_K, k);
      LoadTile<TILE_K, TILE_N, PITCH_B>(
          tiles_b + s * STAGE_B, from_b + static_cast<size_t>(s) * TILE_K * n,
          n);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    const int next = step + STAGES - 1;
    if (next < steps) {
      LoadTile<TILE_M, TILE_K, PITCH_A>(tiles_a + next % STAGES * STAGE_A,
                                        from_a + next * TILE_K, k);
      LoadTile<TILE_K, TILE_N, PITCH_B>(
          tiles_b + next % STAGES * STAGE_B,
          from_b + static_cast<size_t>(next) * TILE_K * n, n);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");

    const Half* const tile_a = tiles_a + step % STAGES * STAGE_A;
    const Half* const tile_b = tiles_b + step % STAGES * STAGE_B;
#pragma unroll
    for (int kk = 0; kk < TILE_K; kk += 16) {
      unsigned frag_a[WARP_M / 16][4];
      unsigned frag_b[WARP_N / 8][2];
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i) {
        const Half* const at = tile_a +
                               (warp_m + i * 16 + lane % 16) * PITCH_A + kk +
                               lane / 16 * 8;
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(frag_a[i][0]), "=r"(frag_a[i][1]), "=r"(frag_a[i][2]),
              "=r"(frag_a[i][3])
            : "r"(SharedAddress(at)));
      }
#pragma unroll
      for (int j = 0; j < WARP_N / 8; j += 2) {
        const Half* const at = tile_b + (kk + lane % 16) * PITCH_B + warp_n +
                               j * 8 + lane / 16 * 8;
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, "
            "[%4];"
            : "=r"(frag_b[j][0]), "=r"(frag_b[j][1]), "=r"(frag_b[j + 1][0]),
              "=r"(frag_b[j + 1][1])
            : "r"(SharedAddress(at)));
      }
#pragma unroll
      for (int i = 0; i < WARP_M / 16; ++i) {
#pragma unroll
        for (int j = 0; j < WARP_N / 8; ++j) {
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]),
                "+f"(sum[i][j][3])
              : "r"(frag_a[i][0]), "r"(frag_a[i][1]), "r"(frag_a[i][2]),
                "r"(frag_a[i][3]), "r"(frag_b[j][0]), "r"(frag_b[j][1]));
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < WARP_M / 16; ++i) {
#pragma unroll
    for (int j = 0; j < WARP_N / 8; ++j) {
      const int row = first_m + warp_m + i * 16 + lane / 4;
      const int col = first_n + warp_n + j * 8 + lane % 4 * 2;
      float* const to = c + static_cast<size_t>(row) * n + col;
      *reinterpret_cast<float2*>(to) = make_float2(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<float2*>(to + static_cast<size_t>(8) * n) =
          make_float2(sum[i][j][2], sum[i][j][3]);
    }
  }
}
