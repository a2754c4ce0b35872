// c[i] = f(a[i] * b[i]) for a batch of matrices on tensor cores from sm_80 on,
// any shape: mma_product.cuh for each i. matmul, linear and batched_matmul are
// this kernel.
//
// Compiled at run time with the macros of mma_product.cuh and epilogue.cuh, and
// TRANSPOSED_A, TRANSPOSED_B 0|1: a[i] is stored as [k][m], b[i] as [n][k].

#include "epilogue.cuh"
#include "mma_product.cuh"
#include "predecessors.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    matrix_product_mma(const uint16_t* a, const uint16_t* b,
                       const uint16_t* bias, uint16_t* c, int m, int n, int k,
                       int group) {
  AwaitPredecessors();
  a += (long long)blockIdx.y * m * k;
  b += (long long)blockIdx.y * k * n;
  c += (long long)blockIdx.y * m * n;
  const MatrixEpilogue epilogue(bias, n);
  Product(
      a, b, c, m, n, k, group,
      [&](int row, int depth) -> const uint16_t* {
        if (row >= m || depth >= k) return nullptr;
        return a + (TRANSPOSED_A ? (long long)depth * m + row
                                 : (long long)row * k + depth);
      },
      [&](int depth, int column) -> const uint16_t* {
        if (depth >= k || column >= n) return nullptr;
        return b + (TRANSPOSED_B ? (long long)column * k + depth
                                 : (long long)depth * n + column);
      },
      [&](int column, float sum) {
        MatrixEpilogue::Column of;
        epilogue.Load(column, of);
        return epilogue.Finish(sum, of);
      });
}
