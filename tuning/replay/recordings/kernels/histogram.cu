// 256 bins over n bytes, read four at a time. A block keeps COPIES histograms
// in shared memory, its warps share them out.

#define BINS 256

template <int kWidth>
struct VecOf;
template <>
struct VecOf<1> {
  using Type = uint1;
};
template <>
struct VecOf<2> {
  using Type = uint2;
};
template <>
struct VecOf<4> {
  using Type = uint4;
};

union Pack {
  VecOf<VEC>::Type vec;
  unsigned words[VEC];
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const unsigned* __restrict__ in, const unsigned* __restrict__ unused,
           unsigned* __restrict__ out, int words, int unused1, int unused2) {
  __shared__ unsigned bins[BINS * COPIES];
  for (int i = threadIdx.x; i < BINS * COPIES; i += BLOCK) bins[i] = 0;
  __syncthreads();

  const int copy = threadIdx.x / 32 % COPIES;
  const auto* const from = reinterpret_cast<const VecOf<VEC>::Type*>(in);
  const int count = words / VEC;
#pragma unroll UNROLL
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < count;
       i += gridDim.x * BLOCK) {
    Pack pack;
    pack.vec = from[i];
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
#pragma unroll
      for (int shift = 0; shift < 32; shift += 8) {
        const unsigned bin = pack.words[v] >> shift & 255u;
#if INTERLEAVED
        unsigned* const at = bins + bin * COPIES + copy;
#else
        unsigned* const at = bins + copy * BINS + bin;
#endif
#if AGGREGATE
        // One thread adds for all of the warp with the same bin.
        const unsigned active = __activemask();
        const unsigned peers = __match_any_sync(active, bin);
        if ((threadIdx.x & 31) == __ffs(peers) - 1) {
          atomicAdd(at, static_cast<unsigned>(__popc(peers)));
        }
#else
        atomicAdd(at, 1u);
#endif
      }
    }
  }
  __syncthreads();

  for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) {
    unsigned sum = 0;
#pragma unroll
    for (int c = 0; c < COPIES; ++c) {
#if INTERLEAVED
      sum += bins[bin * COPIES + c];
#else
      sum += bins[c * BINS + bin];
#endif
    }
    if (sum > 0) atomicAdd(out + bin, sum);
  }
}
