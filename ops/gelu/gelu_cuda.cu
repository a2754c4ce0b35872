// gelu on CUDA. TANH 0: x P(N <= x); 1: the formula with tanh.

#include "elements.cuh"
#include "functions.cuh"

__device__ __forceinline__ float Apply(float x) {
  return TANH ? GeluTanh(x) : Gelu(x);
}

#include "elementwise.cuh"
