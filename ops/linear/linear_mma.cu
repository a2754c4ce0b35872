// y[m, n] = f(x[m, k] * w[k, n] + bias[n]) on tensor cores from sm_80 on, any
// shape: the kernel of ops/matmul/matmul_mma.cu, with the bias and the
// activation before results are rounded.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   INPUT "bf16" or "f16"; ACTIVATION 0 none, 1 relu, 2 gelu; TILE_M, TILE_N, TILE_K (multiples of 16);
//   WARPS_M, WARPS_N; STAGES; GROUP (rows of tiles walked together);
//   VECTOR_A, VECTOR_B: elements per copy, 8, 4, 2 or 1, that divide k and n.

#include "elements.cuh"
#include "functions.cuh"

constexpr int kThreads = WARPS_M * WARPS_N * 32;
constexpr int kWarpM = TILE_M / WARPS_M;
constexpr int kWarpN = TILE_N / WARPS_N;
// A pad of 16 bytes a row keeps ldmatrix free of bank conflicts.
constexpr int kPitchA = TILE_K + 8;
constexpr int kPitchB = TILE_N + 8;
constexpr int kStageA = TILE_M * kPitchA;
constexpr int kStageB = TILE_K * kPitchB;

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// Copies rows x columns from (row0, column0) of a matrix; zeros beyond it.
template <int kRows, int kColumns, int kPitch, int kVector>
__device__ __forceinline__ void LoadTile(uint16_t* tile, const uint16_t* from,
                                         int rows, int columns, int row0,
                                         int column0) {
  constexpr int kPieces = kRows * kColumns / kVector;
#pragma unroll 4
  for (int piece = threadIdx.x; piece < kPieces; piece += kThreads) {
    const int row = piece / (kColumns / kVector);
    const int column = piece % (kColumns / kVector) * kVector;
    const bool inside = row0 + row < rows && column0 + column < columns;
    const uint16_t* at =
        inside ? from + (long long)(row0 + row) * columns + column0 + column
               : from;
    uint16_t* to = tile + row * kPitch + column;
    if (kVector == 8) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                       SharedAddress(to)),
                   "l"(at), "r"(inside ? 16 : 0)
                   : "memory");
    } else if (kVector > 1) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                       SharedAddress(to)),
                   "l"(at), "n"(kVector > 1 && kVector < 8 ? kVector * 2 : 4),
                   "r"(inside ? kVector * 2 : 0)
                   : "memory");
    } else {
      *to = inside ? *at : 0;
    }
  }
}

__device__ __forceinline__ float Activate(float x) {
  return ACTIVATION == 0 ? x : ACTIVATION == 1 ? Relu(x) : Gelu(x);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    linear_mma(const uint16_t* a, const uint16_t* b, const Element* bias,
               uint16_t* c, int m, int n, int k) {
  extern __shared__ __align__(16) uint16_t shared[];
  uint16_t* const tiles_a = shared;
  uint16_t* const tiles_b = shared + STAGES * kStageA;

  const int tiles_n = (n + TILE_N - 1) / TILE_N;
  const int tiles_m = (m + TILE_M - 1) / TILE_M;
  const int in_group = GROUP * tiles_n;
  const int first = blockIdx.x / in_group * GROUP;
  const int group_rows = min(tiles_m - first, GROUP);
  const int m0 = (first + blockIdx.x % in_group % group_rows) * TILE_M;
  const int n0 = blockIdx.x % in_group / group_rows * TILE_N;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / WARPS_N * kWarpM, warp_n = warp % WARPS_N * kWarpN;
  float sum[kWarpM / 16][kWarpN / 8][4] = {};

  const int steps = (k + TILE_K - 1) / TILE_K;
  const auto load = [&](int step) {
    if (step < steps) {
      LoadTile<TILE_M, TILE_K, kPitchA, VECTOR_A>(
          tiles_a + step % STAGES * kStageA, a, m, k, m0, step * TILE_K);
      LoadTile<TILE_K, TILE_N, kPitchB, VECTOR_B>(
          tiles_b + step % STAGES * kStageB, b, k, n, step * TILE_K, n0);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int step = 0; step < STAGES - 1; ++step) load(step);

  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    load(step + STAGES - 1);
    const uint16_t* const tile_a = tiles_a + step % STAGES * kStageA;
    const uint16_t* const tile_b = tiles_b + step % STAGES * kStageB;
#pragma unroll
    for (int inner = 0; inner < TILE_K; inner += 16) {
      uint32_t of_a[kWarpM / 16][4], of_b[kWarpN / 8][2];
#pragma unroll
      for (int i = 0; i < kWarpM / 16; ++i) {
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(of_a[i][0]), "=r"(of_a[i][1]), "=r"(of_a[i][2]),
              "=r"(of_a[i][3])
            : "r"(SharedAddress(tile_a +
                                (warp_m + i * 16 + lane % 16) * kPitchA +
                                inner + lane / 16 * 8)));
      }
#pragma unroll
      for (int j = 0; j < kWarpN / 8; j += 2) {
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, "
            "[%4];"
            : "=r"(of_b[j][0]), "=r"(of_b[j][1]), "=r"(of_b[j + 1][0]),
              "=r"(of_b[j + 1][1])
            : "r"(SharedAddress(tile_b + (inner + lane % 16) * kPitchB +
                                warp_n + j * 8 + lane / 16 * 8)));
      }
#pragma unroll
      for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpN / 8; ++j) {
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." INPUT "." INPUT
                       ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                       "{%0,%1,%2,%3};"
                       : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]),
                         "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                       : "r"(of_a[i][0]), "r"(of_a[i][1]), "r"(of_a[i][2]),
                         "r"(of_a[i][3]), "r"(of_b[j][0]), "r"(of_b[j][1]));
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < kWarpN / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = m0 + warp_m + i * 16 + lane / 4 + half * 8;
        const int column = n0 + warp_n + j * 8 + lane % 4 * 2;
        uint16_t* const to = c + (long long)row * n + column;
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          if (row >= m || column + next >= n) continue;
          to[next] = FromFloat(Activate(sum[i][j][half * 2 + next] +
                                        ToFloat(bias[column + next])));
        }
      }
    }
  }
}
