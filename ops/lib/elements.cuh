#ifndef OPTRAIL_OPS_LIB_ELEMENTS_CUH_
#define OPTRAIL_OPS_LIB_ELEMENTS_CUH_

// What CUDA kernels over f32, f16 or bf16 share: vectors of elements, their
// loads and stores, conversions to the floats that everything is computed in,
// sums over lanes, and meetings of blocks.
//
// Compiled at run time with ELEMENT (0 f32, 1 f16, 2 bf16) as a macro; nothing
// of CUDA's headers is needed.

typedef unsigned int uint32_t;
typedef unsigned short uint16_t;

constexpr int kElementBytes = ELEMENT == 0 ? 4 : 2;

#if ELEMENT == 0
typedef float Element;
#else
typedef uint16_t Element;
#endif

__device__ __forceinline__ float ToFloat(Element x) {
#if ELEMENT == 0
  return x;
#elif ELEMENT == 1
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
#else
  return __uint_as_float((uint32_t)x << 16);
#endif
}

__device__ __forceinline__ Element FromFloat(float x) {
#if ELEMENT == 0
  return x;
#elif ELEMENT == 1
  Element y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#else
  Element y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#endif
}

template <int kCount>
struct alignas(kCount * kElementBytes) Elements {
  Element at[kCount];
};

template <int kCount>
__device__ __forceinline__ void ToFloats(const Elements<kCount>& from,
                                         float (&to)[kCount]) {
#if ELEMENT == 2
  if constexpr (kCount % 2 == 0) {
    const uint32_t* const pairs = (const uint32_t*)from.at;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      to[2 * i] = __uint_as_float(pairs[i] << 16);
      to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
    }
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = ToFloat(from.at[i]);
}

template <int kCount>
__device__ __forceinline__ Elements<kCount> FromFloats(
    const float (&from)[kCount]) {
  Elements<kCount> to;
#if ELEMENT != 0
  if constexpr (kCount % 2 == 0) {
    uint32_t* const pairs = (uint32_t*)to.at;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
#if ELEMENT == 1
      asm("cvt.rn.f16x2.f32 %0, %1, %2;"
#else
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
#endif
          : "=r"(pairs[i])
          : "f"(from[2 * i + 1]), "f"(from[2 * i]));
    }
    return to;
  }
#endif
#pragma unroll
  for (int i = 0; i < kCount; ++i) to.at[i] = FromFloat(from[i]);
  return to;
}

// Of what no kernel writes meanwhile. It is loaded where this stands, so that
// several loads are in flight together. (To keep it out of the L1 costs 4 to 12%
// of the memory's bandwidth on an H200.)
template <int kCount>
__device__ __forceinline__ Elements<kCount> Load(const Elements<kCount>* from) {
  Elements<kCount> v;
  if constexpr (sizeof(v) == 16) {
    uint32_t* const w = (uint32_t*)v.at;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
  } else {
    v = *from;
  }
  return v;
}

// `streaming`: the caches evict it first.
template <bool streaming, int kCount>
__device__ __forceinline__ void Store(Elements<kCount>* to,
                                      const Elements<kCount>& v) {
  if constexpr (streaming && sizeof(v) == 16) {
    const uint32_t* const w = (const uint32_t*)v.at;
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
  } else {
    *to = v;
  }
}

// The sum over `kLanes` neighbouring lanes, in each of them.
template <int kLanes>
__device__ __forceinline__ float SumOfLanes(float x) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    x += __shfl_xor_sync(~0u, x, offset);
  }
  return x;
}

// Whether this block is the last of `blocks` to come here with the same
// counter, which is 0 before and after. What the others wrote before is then
// visible to all threads of it (read past the L1: __ldcg).
__device__ __forceinline__ bool LastToArrive(int* counter, int blocks) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(counter, 1) == blocks - 1;
    if (is_last) *counter = 0;
  }
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

// Waits for all blocks of the grid, which must be resident together;
// counters[0] and [1] are 0 before and after. What they wrote before is then
// visible (read past the L1: __ldcg).
__device__ __forceinline__ void MeetAllBlocks(int* counters) {
  const int blocks = gridDim.x * gridDim.y;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&counters[0], 1);
    int arrived = 0;
    do {
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                   : "=r"(arrived)
                   : "l"(&counters[0])
                   : "memory");
    } while (arrived < blocks);
    // Everybody has seen that all are here before the last one leaves.
    if (atomicAdd(&counters[1], 1) == blocks - 1) counters[0] = counters[1] = 0;
  }
  __syncthreads();
}

#endif  // OPTRAIL_OPS_LIB_ELEMENTS_CUH_
