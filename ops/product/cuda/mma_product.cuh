#ifndef OPTRAIL_OPS_PRODUCT_CUDA_MMA_PRODUCT_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_MMA_PRODUCT_CUH_

// y[m, n] = f(x[m, k] * w[k, n]) on tensor cores from sm_80 on, any shape:
// cp.async into a ring of shared tiles, ldmatrix, mma.sync m16n8k16, f32
// accumulation. Operators say where elements of x lie and what becomes of the
// sums before they are rounded.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   INPUT "bf16" or "f16"; TILE_M, TILE_N, TILE_K (multiples of 16);
//   WARPS_M, WARPS_N; STAGES; VECTOR_A, VECTOR_B: elements per copy, 8, 4, 2 or
//   1, that lie together in x and w.

#include "elements.cuh"
#include "global_words.cuh"

constexpr int kThreads = WARPS_M * WARPS_N * 32;
constexpr int kWarpM = TILE_M / WARPS_M;
constexpr int kWarpN = TILE_N / WARPS_N;
// A pad of 16 bytes a row keeps ldmatrix free of bank conflicts.
constexpr int kPitchA = TILE_K + 8;
constexpr int kPitchB = TILE_N + 8;
constexpr int kStageA = TILE_M * kPitchA;
constexpr int kStageB = TILE_K * kPitchB;
// Single elements wait in registers, those of each tile in flight in their own.
constexpr int kCopies = VECTOR_A == 1 || VECTOR_B == 1 ? STAGES - 1 : 1;

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// Copies tiles of kRows x kColumns elements, whose rows are kPitch apart; where
// `at(row, column)` is null, zeros.
template <int kRows, int kColumns, int kPitch, int kVector>
class TileCopy {
 public:
  // Begins a copy. `somewhere` can be read.
  template <class At>
  __device__ __forceinline__ void Begin(uint16_t* tile,
                                        const uint16_t* somewhere,
                                        const At& at) {
    if constexpr (kVector == 1) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const unsigned piece = threadIdx.x + i * kThreads;
        const uint16_t* const from = at(piece / kInRow, piece % kInRow);
        v_[i] = from != nullptr ? __ldg(from) : 0;
      }
    } else {
#pragma unroll 4
      for (unsigned piece = threadIdx.x; piece < kPieces; piece += kThreads) {
        const int row = piece / kInRow, column = piece % kInRow * kVector;
        const uint16_t* from = at(row, column);
        const bool inside = from != nullptr;
        if (!inside) from = somewhere;
        const uint32_t to = SharedAddress(tile + row * kPitch + column);
        if constexpr (kVector == 8) {
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
              "l"(from), "r"(inside ? 16 : 0)
              : "memory");
        } else {
          asm volatile(
              "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
              "l"(from), "n"(kVector * 2), "r"(inside ? kVector * 2 : 0)
              : "memory");
        }
      }
    }
  }

  // Ends it: the asynchronous copy takes 4 bytes at least, so that single
  // elements wait in registers.
  __device__ __forceinline__ void End(uint16_t* tile) const {
    if constexpr (kVector == 1) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const unsigned piece = threadIdx.x + i * kThreads;
        tile[piece / kInRow * kPitch + piece % kInRow] = v_[i];
      }
    }
  }

 private:
  static constexpr int kPieces = kRows * kColumns / kVector;
  static constexpr unsigned kInRow = kColumns / kVector;
  static constexpr int kEach = kPieces / kThreads;
  static_assert(kVector > 1 || kPieces % kThreads == 0);

  uint16_t v_[kVector == 1 ? kEach : 1];
};

// `at(row, k)`: where VECTOR_A elements of x begin, or null for zeros; both are
// within tiles, and so may be beyond the matrix. `at_w(k, column)`: the same of
// w. `group` rows of tiles are walked together. `finish(column, sum)` is a
// result.
template <class At, class AtW, class Finish>
__device__ __forceinline__ void Product(const uint16_t* x, const uint16_t* w,
                                        uint16_t* y, int m, int n, int k,
                                        int group, const At& at,
                                        const AtW& at_w, const Finish& finish) {
  extern __shared__ __align__(16) uint16_t shared[];
  uint16_t* const tiles_a = shared;
  uint16_t* const tiles_b = shared + STAGES * kStageA;

  const int tiles_n = (n + TILE_N - 1) / TILE_N;
  const int tiles_m = (m + TILE_M - 1) / TILE_M;
  const int in_group = group * tiles_n;
  const int first = blockIdx.x / in_group * group;
  const int group_rows = min(tiles_m - first, group);
  const int m0 = (first + blockIdx.x % in_group % group_rows) * TILE_M;
  const int n0 = blockIdx.x % in_group / group_rows * TILE_N;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / WARPS_N * kWarpM, warp_n = warp % WARPS_N * kWarpN;
  float sum[kWarpM / 16][kWarpN / 8][4] = {};

  const int steps = (k + TILE_K - 1) / TILE_K;
  TileCopy<TILE_M, TILE_K, kPitchA, VECTOR_A> copies_a[kCopies];
  TileCopy<TILE_K, TILE_N, kPitchB, VECTOR_B> copies_b[kCopies];
  const auto begin = [&](int step, int copy) {
    if (step < steps) {
      const int k0 = step * TILE_K;
      copies_a[copy].Begin(
          tiles_a + step % STAGES * kStageA, x,
          [&](int row, int column) { return at(m0 + row, k0 + column); });
      copies_b[copy].Begin(
          tiles_b + step % STAGES * kStageB, w,
          [&](int row, int column) { return at_w(k0 + row, n0 + column); });
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (int step = 0; step < STAGES - 1; ++step) begin(step, step % kCopies);

  const auto multiply = [&](int step, int copy) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    copies_a[copy].End(tiles_a + step % STAGES * kStageA);
    copies_b[copy].End(tiles_b + step % STAGES * kStageB);
    __syncthreads();
    begin(step + STAGES - 1, copy);
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
  };
#pragma unroll 1
  for (int first_step = 0; first_step < steps; first_step += kCopies) {
#pragma unroll
    for (int copy = 0; copy < kCopies; ++copy) {
      if (first_step + copy < steps) multiply(first_step + copy, copy);
    }
  }
  // Results take the ring's place on their way out: threads have two of a row,
  // and memory wants more.
  uint16_t* const results = shared;
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < kWarpN / 8; ++j) {
      if (n0 + warp_n + j * 8 >= n) break;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_m + i * 16 + lane / 4 + half * 8;
        const int column = warp_n + j * 8 + lane % 4 * 2;
        // What lies beyond the last column is not stored.
        const int first = min(n0 + column, n - 1);
        const int second = min(n0 + column + 1, n - 1);
        *(Elements<2>*)(results + row * kPitchB + column) =
            FromFloats<2>({finish(first, sum[i][j][half * 2]),
                           finish(second, sum[i][j][half * 2 + 1])});
      }
    }
  }
  __syncthreads();
  StoreRows<TILE_M, TILE_N, kThreads>(
      threadIdx.x, y, m, n, m0, n0,
      [&](int row, int chunk) {
        const uint4 v = *(const uint4*)(results + row * kPitchB + chunk * 8);
        return Words4{{v.x, v.y, v.z, v.w}};
      },
      [&](int row, int column) { return results[row * kPitchB + column]; },
      StoreGlobalWord);
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_MMA_PRODUCT_CUH_
