// c = a + b on CUDA: nothing but memory.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   THREADS; VECTOR (elements per access); TAIL (elements behind the last whole
//   vector); UNROLL (accesses in flight per thread and operand); STREAMING 1 (stores that the caches evict first) or 0; LOADS 0 plain, 1 not
//   kept in the L1, 2 the L2 also fetches 256 bytes at a time, 3 the L2 also
//   evicts them first.

#include "elements.cuh"
#include "predecessors.cuh"

typedef unsigned long long uint64_t;
typedef Elements<VECTOR> Vector;

__device__ __forceinline__ Element Add(Element x, Element y) {
#if ELEMENT == 0
  return x + y;
#elif ELEMENT == 1
  Element z;
  asm("add.rn.f16 %0, %1, %2;" : "=h"(z) : "h"(x), "h"(y));
  return z;
#else
  const float sum =
      __uint_as_float((uint32_t)x << 16) + __uint_as_float((uint32_t)y << 16);
  Element z;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(z) : "f"(sum));
  return z;
#endif
}

__device__ __forceinline__ Vector LoadOnce(const Vector* from) {
  Vector v;
  if (sizeof(Vector) == 16 && LOADS > 0) {
    uint32_t* w = (uint32_t*)v.at;
#if LOADS == 3
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 "
        "{%0, %1, %2, %3}, [%4], %5;"
        : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
        : "l"(from), "l"(policy));
#elif LOADS == 2
    asm volatile(
        "ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
        : "l"(from));
#else
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
#endif
  } else {
    v = *from;
  }
  return v;
}
extern "C" __global__ void __launch_bounds__(THREADS)
    add(const Vector* a, const Vector* b, Vector* c, long long vectors) {
  AwaitPredecessors();
  const long long first =
      (long long)blockIdx.x * THREADS * UNROLL + threadIdx.x;
#pragma unroll
  for (int i = 0; TAIL > 0 && i < UNROLL; ++i) {
    const long long at = first + i * THREADS - vectors;
    if (at < 0 || at >= TAIL) continue;
    ((Element*)(c + vectors))[at] = Add(((const Element*)(a + vectors))[at],
                                        ((const Element*)(b + vectors))[at]);
  }
  Vector x[UNROLL], y[UNROLL];
#pragma unroll
  for (int i = 0; i < UNROLL; ++i)
    if (first + i * THREADS < vectors) x[i] = LoadOnce(a + first + i * THREADS);
#pragma unroll
  for (int i = 0; i < UNROLL; ++i)
    if (first + i * THREADS < vectors) y[i] = LoadOnce(b + first + i * THREADS);
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * THREADS < vectors) {
      Vector z;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) z.at[j] = Add(x[i].at[j], y[i].at[j]);
      Store<STREAMING>(c + first + i * THREADS, z);
    }
  }
}
