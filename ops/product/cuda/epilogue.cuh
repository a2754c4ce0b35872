#ifndef OPTRAIL_OPS_PRODUCT_CUDA_EPILOGUE_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_EPILOGUE_CUH_

// What becomes of the sums of a product before they are rounded, for
// hopper_product.cuh and skinny_product.cu. An epilogue has
//
//   Column                        what one column of c needs
//   Load(column, Column&)         of one column
//   LoadPair(column, Column[2])   of an even column and the next one
//   Finish(sum, Column) -> float  the result
//
// Columns beyond the last one may be loaded; their results are not stored.
//
// Compiled at run time with elements.cuh's macros and BIAS 0|1; with a bias,
// ACTIVATION 0 none, 1 relu, 2 gelu, and EVEN_N 0|1: n is even.

#include "elements.cuh"
#include "functions.cuh"

// The sums as they are.
struct NoEpilogue {
  struct Column {};
  __device__ NoEpilogue(const Element*, int) {}
  __device__ void Prefetch(int) const {}
  __device__ void Load(int, Column&) const {}
  __device__ void LoadPair(int, Column (&)[2]) const {}
  __device__ float Finish(float sum, const Column&) const { return sum; }
};

// activation(sum + bias[column]); kActivation is 0 none, 1 relu, 2 gelu. With
// kEven, n is even.
template <int kActivation, bool kEven>
struct BiasActivation {
  typedef float Column;
  const Element* bias;
  int n;
  __device__ BiasActivation(const Element* bias, int n) : bias(bias), n(n) {}

  // Brings the bias near, a line of 128 bytes a thread, before the first sums
  // are ready.
  __device__ __forceinline__ void Prefetch(int threads) const {
    for (int i = (int)threadIdx.x * 64; i < n; i += threads * 64)
      asm volatile("prefetch.global.L1 [%0];" ::"l"(bias + i));
  }
  __device__ __forceinline__ void Load(int column, float& to) const {
    to = ToFloat(__ldg(bias + min(column, n - 1)));
  }
  // Without a branch, so that the loads of 64 columns are in flight together.
  __device__ __forceinline__ void LoadPair(int column, float (&to)[2]) const {
    if constexpr (kEven) {
      const uint32_t both = __ldg((const uint32_t*)(bias + min(column, n - 2)));
      ToFloats((const Elements<2>&)both, to);
    } else {
      Load(column, to[0]);
      Load(column + 1, to[1]);
    }
  }
  __device__ __forceinline__ float Finish(float sum, float of_bias) const {
    return Activate<kActivation>(sum + of_bias);
  }
};

#if BIAS
typedef BiasActivation<ACTIVATION, EVEN_N> MatrixEpilogue;
#else
typedef NoEpilogue MatrixEpilogue;
#endif

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_EPILOGUE_CUH_
