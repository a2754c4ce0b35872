// c[m, n] = a[m, k] * b[k, n] on tensor cores from sm_80 on, any shape:
// product_mma.cuh as it is.

#include "product_mma.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    matmul_mma(const uint16_t* a, const uint16_t* b, uint16_t* c, int m, int n,
               int k, int group) {
  Product(
      a, b, c, m, n, k, group,
      [&](int row, int column) {
        return row < m && column < k ? a + (long long)row * k + column
                                     : nullptr;
      },
      [](int column, float sum) { return sum; });
}
