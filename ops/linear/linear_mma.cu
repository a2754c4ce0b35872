// y[m, n] = f(x[m, k] * w[k, n] + bias[n]) on tensor cores from sm_80 on, any
// shape: product_mma.cuh, with the bias and the activation before results are
// rounded.
//
// Compiled at run time with product_mma.cuh's macros and
//   ACTIVATION 0 none, 1 relu, 2 gelu.

#include "functions.cuh"
#include "product_mma.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    linear_mma(const uint16_t* x, const uint16_t* w, const Element* bias,
               uint16_t* y, int m, int n, int k, int group) {
  Product(
      x, w, y, m, n, k, group,
      [&](int row, int column) {
        return row < m && column < k ? x + (long long)row * k + column
                                     : nullptr;
      },
      [&](int column, float sum) {
        return Activate<ACTIVATION>(sum + ToFloat(bias[column]));
      });
}
