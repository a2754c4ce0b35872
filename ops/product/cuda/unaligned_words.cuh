#ifndef OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_WORDS_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_WORDS_CUH_

// Words of rows that are no multiples of 16 bytes. Plain arithmetic, which the
// host tests too (unaligned_test.cc).

// Eight elements of 16 bits, the first in the lower half of v[0].
struct Words4 {
  uint32_t v[4];
};

// The eight elements from `shift` on of two words; with `kCut`, of those the
// first `count`.
template <bool kCut>
__device__ __forceinline__ Words4 Shifted(const Words4& low, const Words4& high,
                                          int shift, int count) {
  uint32_t x[8], y[7];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = low.v[i], x[i + 4] = high.v[i];
#pragma unroll
  for (int i = 0; i < 7; ++i) y[i] = shift & 2 ? x[i + 1] : x[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) x[i] = shift & 4 ? y[i + 2] : y[i];
  Words4 result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result.v[i] = __funnelshift_r(x[i], x[i + 1], shift % 2 * 16);
    if (kCut && count < i * 2 + 2) result.v[i] &= count > i * 2 ? 0xffff : 0;
  }
  return result;
}

// The first `count` elements of a matrix's last word, and zeros: nothing beyond
// the matrix may be read.
__device__ __forceinline__ Words4 LastWord(const uint16_t* from, int count) {
  Words4 word = {};
#pragma unroll 1
  for (int i = count - 1; i >= 0; --i) {
#pragma unroll
    for (int j = 3; j > 0; --j)
      word.v[j] = __funnelshift_l(word.v[j - 1], word.v[j], 16);
    word.v[0] = word.v[0] << 16 | from[i];
  }
  return word;
}

// Writes rows of kColumns columns of a tile to a row-major matrix, of which
// (m0, n0) is the tile's first element: whole aligned words, and single
// elements before the first and behind the last of them. `thread` of kThreads;
// word_at(row, chunk) is eight elements of the tile, element_at(row, column)
// one, and store(to, word) writes 16 bytes.
template <int kRows, int kColumns, int kThreads, class WordAt, class ElementAt,
          class Store>
__device__ __forceinline__ void StoreRows(int thread, uint16_t* matrix, int m,
                                          int n, int m0, int n0,
                                          const WordAt& word_at,
                                          const ElementAt& element_at,
                                          const Store& store) {
  constexpr int kChunks = kColumns / 8;  // a thread for each, of a row
  const int chunk = thread % kChunks;
  const int count = n - n0 < kColumns ? n - n0 : kColumns;
#pragma unroll 4
  for (int row = thread / kChunks; row < kRows; row += kThreads / kChunks) {
    if (m0 + row >= m) return;
    uint16_t* const to = matrix + (long long)(m0 + row) * n + n0;
    const int skipped = (int)(-((long long)to / 2) & 7);
    const int words = count > skipped ? (count - skipped) / 8 : 0;
    if (chunk < words) {
      const Words4 low = word_at(row, chunk);
      Words4 high = {};
      if (skipped > 0) high = word_at(row, chunk + 1);
      store(to + skipped + chunk * 8, Shifted<false>(low, high, skipped, 8));
    }
    for (int i = chunk; i < count - words * 8; i += kChunks) {
      const int column = i < skipped ? i : i + words * 8;
      to[column] = element_at(row, column);
    }
  }
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_WORDS_CUH_
