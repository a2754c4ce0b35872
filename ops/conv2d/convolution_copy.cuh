#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_COPY_CUH_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_COPY_CUH_

// Copies that the bulk copy engine can load where it cannot load x or the
// filters, for convolution_hopper.cu: their rows are padded to multiples of 16
// bytes. The macro LAYOUT says which rows:
//
//   AS_IS     nothing is copied
//   FILTERS   the filters of each channel and place, where K is no multiple
//             of 8
//   CHANNELS  these, and the channels of each pixel of x
//   LINES     the filters, and of each line of x and column of y the pixels
//             under the filter, with zeros for padding: S * C channels of one
//             place, so that small numbers of channels fill steps of 64

#include "global_words.cuh"
#include "predecessors.cuh"

#define AS_IS 0
#define FILTERS 1
#define CHANNELS 2
#define LINES 3

#if LAYOUT != AS_IS
constexpr int Padded(int count) { return (count + 7) / 8 * 8; }

// A copy of lines of kLine elements: from each line kColumns rows, of which row
// i has the kRun elements from kFirst + i * kStep on and zeros up to a multiple
// of 8. What is outside the line is zero.
template <int kLine, int kColumns, int kFirst, int kStep, int kRun>
struct CopiedRows {
  static constexpr unsigned kWords = Padded(kRun) / 8;  // of a row

  // Eight elements of the copy.
  static __device__ __forceinline__ Words4 Word(const uint16_t* from,
                                                unsigned lines, unsigned word) {
    const unsigned row = word / kWords, line = row / kColumns;
    const int within = word % kWords * 8;
    const int begin = kFirst + (int)(row % kColumns) * kStep + within;
    const int end = min(min(8, kRun - within), kLine - begin);
    const int outside = begin < 0 ? -begin : 0;  // elements before the line
    if (outside >= end) return {};
    // `begin` may be negative in the first line.
    Words4 result = WordAt<true>(from, (long long)line * kLine + begin,
                                 (long long)lines * kLine, end);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (outside > i * 2)
        result.v[i] &= outside == i * 2 + 1 ? 0xffff0000u : 0;
    }
    return result;
  }
};

typedef CopiedRows<K, 1, 0, 0, K> CopiedFilters;
#if LAYOUT == LINES
typedef CopiedRows<W * C, Q, -PADDING * C, STRIDE * C, S * C> CopiedPixels;
constexpr unsigned kColumnsOfCopy = Q;
#else
typedef CopiedRows<W * C, W, 0, C, C> CopiedPixels;
constexpr unsigned kColumnsOfCopy = LAYOUT == CHANNELS ? W : 0;
#endif

// One thread for each word of both copies. `lines` of x, in all images.
extern "C" __global__ void __launch_bounds__(256)
    convolution_copy(const uint16_t* x, const uint16_t* weights, unsigned lines,
                     uint16_t* copy_of_x, uint16_t* copy_of_weights) {
  AwaitPredecessors();
  constexpr unsigned kRowsOfWeights = K % 8 != 0 ? R * S * C : 0;
  const unsigned in_x = lines * kColumnsOfCopy * CopiedPixels::kWords;
  unsigned word = blockIdx.x * 256 + threadIdx.x;
  Words4 v;
  uint16_t* to;
  if (word < in_x) {
    v = CopiedPixels::Word(x, lines, word);
    to = copy_of_x;
  } else {
    word -= in_x;
    if (word >= kRowsOfWeights * CopiedFilters::kWords) return;
    v = CopiedFilters::Word(weights, kRowsOfWeights, word);
    to = copy_of_weights;
  }
  *(uint4*)(to + word * 8ll) = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
}
#endif

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_COPY_CUH_
