// c[i] = a[i] * b[i] on tensor cores from sm_80 on, any shape: product_mma.cuh
// for each i.
//
// Compiled at run time with product_mma.cuh's macros and TRANSPOSED_X,
// TRANSPOSED_W 0|1: a[i] lies as [k][m], b[i] as [n][k].

#include "product_mma.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    batched_matmul_mma(const uint16_t* a, const uint16_t* b, uint16_t* c,
                       int batch, int m, int n, int k, int group) {
  a += (long long)blockIdx.y * m * k;
  b += (long long)blockIdx.y * k * n;
  c += (long long)blockIdx.y * m * n;
  Product(
      a, b, c, m, n, k, group,
      [&](int row, int depth) -> const uint16_t* {
        if (row >= m || depth >= k) return nullptr;
        return a + (TRANSPOSED_X ? (long long)depth * m + row
                                 : (long long)row * k + depth);
      },
      [&](int depth, int column) -> const uint16_t* {
        if (depth >= k || column >= n) return nullptr;
        return b + (TRANSPOSED_W ? (long long)column * k + depth
                                 : (long long)depth * n + column);
      },
      [](int column, float sum) { return sum; });
}
