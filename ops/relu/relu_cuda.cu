#include "elements.cuh"
#include "functions.cuh"

__device__ __forceinline__ float Apply(float x) { return Relu(x); }

#include "elementwise.cuh"
