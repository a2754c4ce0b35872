// c[i] = f(a[i] * b[i]) for a batch of matrices on Hopper: hopper_product.cuh
// over dense matrices. matmul, linear and batched_matmul are this kernel.
//
// Compiled at run time with the macros of hopper_product.cuh, matrices.cuh and
// epilogue.cuh.

#include "epilogue.cuh"
#include "matrices.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    matrix_product(const __grid_constant__ TensorMap map_a,
                   const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, const uint16_t* a,
                   const uint16_t* b, const uint16_t* bias, uint16_t* c,
                   int batch, int m, int n, int k, Walk walk, float* partial,
                   int* arrived) {
  if (threadIdx.x == 0) {
    if (!kUnalignedA) PrefetchMap(&map_a);
    if (!kUnalignedB) PrefetchMap(&map_b);
    if (!kUnalignedC) PrefetchMap(&map_c);
  }
  const Sizes sizes(m, n, k);
  const MatrixEpilogue epilogue(bias, n);
  epilogue.Prefetch(kThreads);
  Product(Matrices{&map_a, &map_b, a, b, sizes}, epilogue,
          ResultMatrix{&map_c, c, sizes}, BATCHED ? batch * sizes.padded : m, n,
          (k + kBk - 1) / kBk, walk, partial, arrived);
}
