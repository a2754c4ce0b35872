// The arithmetic of unaligned.cuh: words of rows that are no
// multiples of 16 bytes, shifted into chunks of eight elements.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace {

#define __device__
#define __forceinline__ inline
struct Thread {
  int x = 0;
} threadIdx;
uint32_t __funnelshift_l(uint32_t low, uint32_t high, int by) {
  return static_cast<uint32_t>(((uint64_t{high} << 32 | low) << by) >> 32);
}
uint32_t __funnelshift_r(uint32_t low, uint32_t high, int by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> by);
}
#include "ops/product/cuda/unaligned_words.cuh"

uint16_t ElementOf(const Words4& word, int i) {
  return static_cast<uint16_t>(word.v[i / 2] >> i % 2 * 16);
}

Words4 WordAt(const std::vector<uint16_t>& row, int64_t first) {
  const int64_t left = static_cast<int64_t>(row.size()) - first;
  return LastWord(row.data() + first, static_cast<int>(left < 0   ? 0
                                                       : left > 8 ? 8
                                                                  : left));
}

TEST(UnalignedWords, TheLastOneHasZerosBeyondTheMatrix) {
  std::vector<uint16_t> elements;
  for (int i = 0; i < 8; ++i) elements.push_back(static_cast<uint16_t>(i + 1));
  for (int count = -3; count <= 8; ++count) {
    const Words4 word = LastWord(elements.data(), count);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(ElementOf(word, i), i < count ? elements[i] : 0) << count;
    }
  }
}

TEST(UnalignedWords, ShiftedOnesAreTheEightElementsThatBeginThere) {
  optrail::Rng rng(1);
  std::vector<uint16_t> elements(16);
  for (uint16_t& element : elements) {
    element = static_cast<uint16_t>(rng.UniformInt(1 << 16));
  }
  const Words4 low = WordAt(elements, 0), high = WordAt(elements, 8);
  for (int shift = 0; shift < 8; ++shift) {
    for (int count = -2; count <= 9; ++count) {
      const Words4 all = Shifted<false>(low, high, shift, count);
      const Words4 cut = Shifted<true>(low, high, shift, count);
      for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(ElementOf(all, i), elements[shift + i]) << shift;
        EXPECT_EQ(ElementOf(cut, i), i < count ? elements[shift + i] : 0)
            << shift << " " << count;
      }
    }
  }
}

TEST(UnalignedWords, RowsOfATileReachTheMatrixAndNothingElse) {
  constexpr int kRows = 16, kColumns = 64, kThreads = 32, kAllRows = 20;
  const auto element = [](int row, int column) {
    return static_cast<uint16_t>(1 + row * kColumns + column);
  };
  for (int n = 1; n < 200; n += 3) {
    for (int n0 = 0; n0 < n + kColumns; n0 += kColumns) {
      for (const int m0 : {0, 8}) {
        alignas(16) static uint16_t matrix[kAllRows * 200];
        std::fill(std::begin(matrix), std::end(matrix), 0);
        for (int thread = 0; thread < kThreads; ++thread) {
          StoreRows<kRows, kColumns, kThreads>(
              thread, matrix, kAllRows, n, m0, n0,
              [&](int row, int chunk) {
                EXPECT_LT(chunk, kColumns / 8);
                Words4 word = {};
                for (int i = 0; i < 8; ++i) {
                  word.v[i / 2] |= uint32_t{element(row, chunk * 8 + i)}
                                   << i % 2 * 16;
                }
                return word;
              },
              element,
              [&](uint16_t* to, const Words4& word) {
                EXPECT_EQ((to - matrix) % 8, 0);
                for (int i = 0; i < 8; ++i) to[i] = ElementOf(word, i);
              });
        }
        for (int row = 0; row < kAllRows; ++row) {
          for (int column = 0; column < n; ++column) {
            const bool inside = row >= m0 && row < m0 + kRows && column >= n0 &&
                                column < n0 + kColumns;
            ASSERT_EQ(matrix[row * n + column],
                      inside ? element(row - m0, column - n0) : 0)
                << n << " " << n0 << " " << row << " " << column;
          }
        }
      }
    }
  }
}

}  // namespace
