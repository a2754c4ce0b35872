// y[i] = Apply(x[i]) on CUDA: nothing but memory, as long as Apply is cheap.
// Included behind Apply, a function of floats.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   THREADS; VECTOR (elements per access); TAIL (elements behind the last whole
//   vector); UNROLL (accesses in flight per thread); STREAMING 1 (evict first)
//   or 0.

#include "predecessors.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    map(const Elements<VECTOR>* x, Elements<VECTOR>* y, long long vectors) {
  AwaitPredecessors();
  const long long first =
      (long long)blockIdx.x * THREADS * UNROLL + threadIdx.x;
#pragma unroll
  for (int i = 0; TAIL > 0 && i < UNROLL; ++i) {
    const long long at = first + i * THREADS - vectors;
    if (at < 0 || at >= TAIL) continue;
    ((Element*)(y + vectors))[at] =
        FromFloat(Apply(ToFloat(((const Element*)(x + vectors))[at])));
  }
  Elements<VECTOR> v[UNROLL];
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * THREADS < vectors) v[i] = Load(x + first + i * THREADS);
  }
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * THREADS < vectors) {
      float values[VECTOR];
      ToFloats(v[i], values);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[j] = Apply(values[j]);
      Store<STREAMING>(y + first + i * THREADS, FromFloats(values));
    }
  }
}
