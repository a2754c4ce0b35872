#include "elements.cuh"

__device__ __forceinline__ float Apply(float x) { return x < 0 ? 0 : x; }

#include "elementwise.cuh"
