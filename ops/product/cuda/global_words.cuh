#ifndef OPTRAIL_OPS_PRODUCT_CUDA_GLOBAL_WORDS_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_GLOBAL_WORDS_CUH_

// Eight elements from any place of a matrix in memory: two aligned words of 16
// bytes, shifted. The matrix begins at a multiple of 16 bytes, and nothing
// beyond its `count` elements is read. Include after the integers' names
// (elements.cuh or hopper.cuh).
//
//   const Words4 word = WordAt<false>(matrix, first, count, 8);

#include "unaligned_words.cuh"

__device__ __forceinline__ Words4 WholeWord(const uint16_t* from) {
  const uint4 v = __ldg((const uint4*)from);
  return {{v.x, v.y, v.z, v.w}};
}

// A struct would be stored element by element.
__device__ __forceinline__ void StoreGlobalWord(uint16_t* to,
                                                const Words4& word) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(word.v[0]), "r"(word.v[1]), "r"(word.v[2]), "r"(word.v[3])
               : "memory");
}

// The word at `at`, a multiple of 8; what is outside the matrix is zero.
__device__ __forceinline__ Words4 AlignedWord(const uint16_t* matrix,
                                              long long at, long long count) {
  if (at < 0 || at >= count) return {};
  if (at + 8 <= count) return WholeWord(matrix + at);
  // All loads of the last word are in flight together.
  uint32_t last[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    last[i] = at + i < count ? __ldg(matrix + at + i) : 0;
  Words4 word;
#pragma unroll
  for (int i = 0; i < 4; ++i) word.v[i] = last[2 * i] | last[2 * i + 1] << 16;
  return word;
}

// `used` elements from `first` on, at least one; with `kCut`, zeros behind
// them. `first` may be negative.
template <bool kCut>
__device__ __forceinline__ Words4 WordAt(const uint16_t* matrix,
                                         long long first, long long count,
                                         int used) {
  const int shift = (int)(first & 7);
  const Words4 low = AlignedWord(matrix, first - shift, count);
  Words4 high = {};
  if (shift + used > 8) high = AlignedWord(matrix, first - shift + 8, count);
  return Shifted<kCut>(low, high, shift, used);
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_GLOBAL_WORDS_CUH_
