// c[i] = f(a[i] * b[i]) for a batch of matrices on Hopper: hopper_product.cuh
// over dense matrices. matmul, linear and batched_matmul are this kernel.
//
// Compiled at run time with the macros of hopper_product.cuh, matrices.cuh and
// epilogue.cuh, and PADDED 0|1: product_copy runs first.

#include "epilogue.cuh"
#include "matrices.cuh"
#include "predecessors.cuh"
// After the integers' names:
#include "global_words.cuh"

extern "C" __global__ void __launch_bounds__(kThreads, 1) OPTRAIL_CLUSTER
    matrix_product(const __grid_constant__ TensorMap map_a,
                   const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, const uint16_t* a,
                   const uint16_t* b, const uint16_t* bias, uint16_t* c,
                   int batch, int m, int n, int k, Walk walk, float* partial,
                   int* arrived) {
  AwaitPredecessors();
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

#if PADDED
// A row-major matrix and its copy, whose rows are padded with zeros to
// multiples of 16 bytes, so that the copy engine can load them.
struct CopiedMatrix {
  const uint16_t* from;
  uint16_t* to;
  unsigned rows, columns;

  __device__ __forceinline__ unsigned WordsOfRow() const {
    return (columns + 7) / 8;
  }
  __device__ __forceinline__ void CopyWord(unsigned word) const {
    const unsigned row = word / WordsOfRow(), at = word % WordsOfRow() * 8;
    const Words4 v =
        WordAt<true>(from, (long long)row * columns + at,
                     (long long)rows * columns, (int)min(8u, columns - at));
    *(uint4*)(to + word * 8ll) = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
  }
};

// One thread for each word of both copies. A matrix that is not copied has no
// rows.
extern "C" __global__ void __launch_bounds__(256)
    product_copy(CopiedMatrix a, CopiedMatrix b) {
  AwaitPredecessors();
  const unsigned word = blockIdx.x * 256 + threadIdx.x;
  const unsigned of_a = a.rows * a.WordsOfRow();
  if (word < of_a) {
    a.CopyWord(word);
  } else if (word - of_a < b.rows * b.WordsOfRow()) {
    b.CopyWord(word - of_a);
  }
}
#endif
