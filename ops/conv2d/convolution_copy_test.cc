// Copies with padded rows, as the GPU's threads write them, on the host.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace {

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
using std::min;
struct Index {
  unsigned x = 0;
} threadIdx, blockIdx;
struct uint4 {
  uint32_t x, y, z, w;
};
uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  return {x, y, z, w};
}
uint4 __ldg(const uint4* from) { return *from; }
uint16_t __ldg(const uint16_t* from) { return *from; }
uint32_t __funnelshift_l(uint32_t low, uint32_t high, int by) {
  return static_cast<uint32_t>(((uint64_t{high} << 32 | low) << by) >> 32);
}
uint32_t __funnelshift_r(uint32_t low, uint32_t high, int by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> by);
}

#define LAYOUT LINES
#define W 9
#define C 5
#define K 11
#define R 3
#define S 3
#define Q 5
#define STRIDE 2
#define PADDING 1
#include "ops/conv2d/convolution_copy.cuh"

std::vector<uint16_t> RandomElements(size_t count) {
  optrail::Rng rng(1);
  std::vector<uint16_t> elements(count);
  for (uint16_t& element : elements) {
    element = static_cast<uint16_t>(rng.UniformInt(65536));
  }
  return elements;
}

// All words of a copy, beside the elements that they should have.
template <int kLine, int kColumns, int kFirst, int kStep, int kRun>
void ExpectRows(int lines) {
  typedef CopiedRows<kLine, kColumns, kFirst, kStep, kRun> Rows;
  const std::vector<uint16_t> from =
      RandomElements(static_cast<size_t>(lines) * kLine);
  for (int row = 0; row < lines * kColumns; ++row) {
    for (int i = 0; i < Padded(kRun); ++i) {
      const Words4 word =
          Rows::Word(from.data(), lines, row * Rows::kWords + i / 8);
      const int at = kFirst + row % kColumns * kStep + i;
      const bool inside = i < kRun && at >= 0 && at < kLine;
      ASSERT_EQ(static_cast<uint16_t>(word.v[i % 8 / 2] >> i % 2 * 16),
                inside ? from[row / kColumns * kLine + at] : 0)
          << "row " << row << ", element " << i;
    }
  }
}

TEST(CopiedRows, HaveTheirElementsAndZeros) {
  ExpectRows<9 * 5, 5, -5, 10, 15>(7);   // lines under a filter
  ExpectRows<7 * 17, 7, 0, 17, 17>(5);   // channels of pixels
  ExpectRows<6 * 3, 6, -6, 3, 15>(4);    // two columns of padding
  ExpectRows<5 * 1, 5, -3, 1, 7>(3);     // one channel, wide padding
  ExpectRows<4 * 64, 2, 0, 128, 64>(2);  // aligned rows
  ExpectRows<271, 1, 0, 0, 271>(9);      // filters
  ExpectRows<3, 1, 0, 0, 3>(1);          // less than a word in all
}

TEST(ConvolutionCopy, WritesBothCopiesAndNothingElse) {
  constexpr unsigned kLines = 6, kPitch = Padded(S * C);
  constexpr uint16_t kGuard = 0xabcd;
  const std::vector<uint16_t> x = RandomElements(kLines * W * C);
  const std::vector<uint16_t> weights = RandomElements(R * S * C * K);
  struct alignas(16) Word {
    uint16_t at[8];
  };
  Word guard;
  std::fill_n(guard.at, 8, kGuard);
  std::vector<Word> of_x(kLines * Q * kPitch / 8 + 1, guard);
  std::vector<Word> of_weights(R * S * C * Padded(K) / 8 + 1, guard);
  for (blockIdx.x = 0; blockIdx.x < 3; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < 256; ++threadIdx.x) {
      convolution_copy(x.data(), weights.data(), kLines, of_x[0].at,
                       of_weights[0].at);
    }
  }
  EXPECT_EQ(of_x.back().at[0], kGuard);
  EXPECT_EQ(of_weights.back().at[0], kGuard);
  for (unsigned row = 0; row < kLines * Q; ++row) {
    for (unsigned i = 0; i < kPitch; ++i) {
      const int at = (static_cast<int>(row % Q) * STRIDE - PADDING) * C +
                     static_cast<int>(i);
      const bool inside = i < S * C && at >= 0 && at < W * C;
      EXPECT_EQ(of_x[(row * kPitch + i) / 8].at[i % 8],
                inside ? x[row / Q * W * C + at] : 0);
    }
  }
  for (unsigned row = 0; row < R * S * C; ++row) {
    for (unsigned i = 0; i < Padded(K); ++i) {
      EXPECT_EQ(of_weights[(row * Padded(K) + i) / 8].at[i % 8],
                i < K ? weights[row * K + i] : 0);
    }
  }
}

}  // namespace
