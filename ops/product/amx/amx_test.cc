#include "ops/product/amx/amx.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/lib/blocks.h"
#include "ops/product/amx/pairs.h"
#include "ops/product/amx/testing/emulated_tiles.h"

namespace optrail::ops {
namespace {

uint16_t Bf16(float x) {
  uint16_t y = 0;
  RoundToBf16(&x, 1, 1, 1, &y, 1);
  return y;
}

std::vector<uint16_t> RandomBits(int64_t count) {
  Rng rng(1);
  std::vector<uint16_t> bits(count);
  for (uint16_t& b : bits) b = static_cast<uint16_t>(rng());
  return bits;
}

TEST(PackPairs, PutsTwoStepsSideBySideAndZerosWhereNothingIs) {
  const auto b = RandomBits(100 * 90);
  for (const int64_t depth : {1, 2, 31, 32, 33, 65}) {
    for (const int64_t columns : {1, 15, 16, 17, 32, 33, 48, 70}) {
      constexpr int64_t kStride = 90;
      std::vector<uint16_t> packed(PackedElements(depth, columns), 0xABCD);
      PackPairs(b.data(), depth, columns, kStride, packed.data());
      const int64_t steps = (depth + 31) / 32;
      for (int64_t tile = 0; tile < (columns + 15) / 16; ++tile) {
        for (int64_t k = 0; k < steps * 32; ++k) {
          for (int64_t c = 0; c < 16; ++c) {
            const int64_t column = tile * 16 + c;
            const uint16_t expected = k < depth && column < columns
                                          ? b[k * kStride + column]
                                          : uint16_t{0};
            const int64_t at = (tile / 2 * steps + k / 32) * kPanelStep +
                               tile % 2 * 512 + k % 32 / 2 * 32 + c * 2 + k % 2;
            ASSERT_EQ(packed[at], expected)
                << depth << " x " << columns << ": " << k << ", " << column;
          }
        }
      }
    }
  }
}

// The last row ends where the factor does. Rows may overlap.
TEST(PackTileRows, CutsRowsIntoStepsAndFillsUpWithZeros) {
  for (const int64_t lda : {6, 100, 128}) {
    for (const int64_t rows : {1, 16, 17, 32, 50}) {
      for (const int64_t depth : {1, 21, 31, 32, 33, 96, 99}) {
        const int64_t taken = (rows - 1) * lda + depth;
        const auto a = RandomBits(taken);
        const int64_t step = rows * 32 + 7;
        const int64_t steps = (depth + 31) / 32;
        std::vector<uint16_t> packed(steps * step, 0xABCD);
        PackTileRows(a.data(), rows, depth, lda, taken, step, packed.data());
        for (int64_t s = 0; s < steps; ++s) {
          for (int64_t i = 0; i < step; ++i) {
            const int64_t r = i / 32, k = s * 32 + i % 32;
            const uint16_t expected = r == rows   ? 0xABCD
                                      : k < depth ? a[r * lda + k]
                                                  : 0;
            ASSERT_EQ(packed[s * step + i], expected)
                << rows << " x " << depth << ", " << lda << " apart: " << r
                << ", " << k;
          }
        }
      }
    }
  }
}

// What lies around the pieces is NaN here, and must not be seen.
TEST(GatherTileRows, PutsPiecesOneAfterTheOther) {
  constexpr uint16_t kNan = 0x7FC0;
  constexpr int64_t kAround = 32;
  for (const int64_t pieces : {1, 2, 3, 7}) {
    for (const int64_t run : {1, 3, 5, 9, 21, 31, 32, 33, 70}) {
      for (const int64_t lda : {1, 6, 80}) {
        for (const int64_t rows : {1, 5, 32}) {
          const int64_t depth = (pieces * run + 31) / 32 * 32 + 32;
          const int64_t taken = (rows - 1) * lda + run;
          std::vector<uint16_t> a((kAround + taken) * pieces + kAround, kNan);
          const int64_t apart = kAround + taken;
          for (int64_t piece = 0; piece < pieces; ++piece) {
            const auto values = RandomBits(taken);
            std::copy(values.begin(), values.end(),
                      a.begin() + kAround + piece * apart);
          }
          std::vector<uint16_t> gathered(rows * depth + 1, 0xABCD);
          for (int64_t first = 0; first < depth; first += 32) {
            GatherTileRows(a.data() + kAround, rows, lda, pieces, run, apart,
                           first, depth, gathered.data() + first);
          }
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t k = 0; k < depth; ++k) {
              const uint16_t expected =
                  k < pieces * run
                      ? a[kAround + k / run * apart + r * lda + k % run]
                      : 0;
              ASSERT_EQ(gathered[r * depth + k], expected)
                  << rows << " rows of " << pieces << " x " << run << ": " << r
                  << ", " << k;
            }
          }
          EXPECT_EQ(gathered.back(), 0xABCD);
        }
      }
    }
  }
}

// One product of 7 rows: its definition, written down once more.
template <class Tiles>
void ExpectMultiplies() {
  constexpr int kRows = 7;
  Rng rng(3);
  std::vector<uint16_t> a(kRows * 40), b(16 * 32);
  for (uint16_t& x : a) x = Bf16(static_cast<float>(rng.Gaussian()));
  for (uint16_t& x : b) x = Bf16(static_cast<float>(rng.Gaussian()));
  // Denormals count as 0, also beside what would make much of them.
  a[0] = 0x0001;
  b[0] = Bf16(1e38f);
  a[40] = Bf16(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> wide_a(a.size()), wide_b(b.size());
  Widen(a.data(), 1, a.size(), a.size(), wide_a.data(), a.size());
  Widen(b.data(), 1, b.size(), b.size(), wide_b.data(), b.size());
  wide_a[0] = 0;
  std::vector<float> sums(kRows * 20, 2);
  Tiles tiles;
  tiles.Configure({kRows, kRows, 16, 0, 0, 0, 0, 0});
  tiles.template Load<0>(sums.data(), 20 * 4);
  tiles.template Load<1>(a.data(), 40 * 2);
  tiles.template Load<2>(b.data(), 64);
  tiles.template MultiplyAdd<0, 1, 2>();
  tiles.template Store<0>(sums.data(), 20 * 4);
  tiles.Release();
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < 16; ++c) {
      double expected = 2;
      for (int k = 0; k < 32; ++k) {
        expected += double{wide_a[r * 40 + k]} *
                    double{wide_b[k / 2 * 32 + c * 2 + k % 2]};
      }
      if (r == 1) {
        EXPECT_TRUE(std::isnan(sums[r * 20 + c])) << c;
      } else if (c == 0) {
        EXPECT_NEAR(sums[r * 20] / expected, 1, 1e-5) << r;
      } else {
        EXPECT_NEAR(sums[r * 20 + c], expected, 1e-4) << r << ", " << c;
      }
    }
    for (int c = 16; c < 20; ++c) EXPECT_EQ(sums[r * 20 + c], 2);
  }
}

TEST(EmulatedTiles, Multiply) { ExpectMultiplies<EmulatedTiles>(); }

TEST(EmulatedTilesDeathTest, StopWhereTheInstructionWouldFault) {
  EmulatedTiles tiles;
  tiles.Configure({3, 4, 16, 0, 0, 0, 0, 0});
  EXPECT_DEATH((tiles.MultiplyAdd<0, 1, 2>()), "tiles 0, 1, 2");
  EXPECT_DEATH(tiles.Zero<3>(), "tile 3");
  tiles.Release();
  EXPECT_DEATH(tiles.Zero<0>(), "tile 0");
}

#if defined(__x86_64__)

TEST(AmxTiles, MultiplyAsTheEmulatedOnes) {
  const absl::Status here = AmxForBf16();
  if (!here.ok()) GTEST_SKIP() << here.message();
  ExpectMultiplies<AmxTiles>();
}

TEST(RoundTilesToBf16, RoundsAsEverybody) {
  if (!__builtin_cpu_supports("avx512bf16")) {
    GTEST_SKIP() << "unsupported here: no AVX512_BF16";
  }
  std::vector<float> x(4 * 40);
  Rng rng(5);
  for (float& v : x) v = static_cast<float>(rng.Gaussian());
  // Ties, NaN, infinities, the largest.
  const uint32_t special[] = {0x3F808000, 0x3F818000, 0x7FC10000, 0x7F800000,
                              0xFF800000, 0x7F7FFFFF, 0x80000000, 0xFFFF0000};
  std::memcpy(x.data(), special, sizeof(special));
  for (const int64_t columns : {1, 8, 15, 16, 17, 31, 32}) {
    std::vector<uint16_t> expected(4 * 33, 7), rounded(4 * 33, 7);
    RoundToBf16(x.data(), 4, columns, 40, expected.data(), 33);
    RoundTilesToBf16(Epilogue(), x.data(), 4, columns, 40, rounded.data(), 33);
    EXPECT_EQ(rounded, expected) << columns;
  }
  // After an epilogue, of which no more than the columns may be read.
  for (const bool scales : {false, true}) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      for (const int64_t columns : {1, 16, 17, 32}) {
        const std::vector<float> scale(columns, 3), shift(columns, -0.5f);
        Epilogue epilogue;
        if (scales) epilogue.scale = scale.data();
        epilogue.shift = shift.data();
        epilogue.activation = activation;
        std::vector<float> ended = x;
        ScaleShiftActivate(epilogue, ended.data(), 4, columns, 40);
        std::vector<uint16_t> expected(4 * 33, 7), rounded(4 * 33, 7);
        RoundToBf16(ended.data(), 4, columns, 40, expected.data(), 33);
        RoundTilesToBf16(epilogue, x.data(), 4, columns, 40, rounded.data(),
                         33);
        EXPECT_EQ(rounded, expected) << columns;
      }
    }
  }
  // What is left of a NaN is no infinity.
  const uint32_t low_payload = 0x7F800001;
  std::memcpy(x.data(), &low_payload, sizeof(low_payload));
  uint16_t rounded = 0;
  RoundTilesToBf16(Epilogue(), x.data(), 1, 1, 40, &rounded, 1);
  EXPECT_EQ(rounded, 0x7FC0);
}

#endif

}  // namespace
}  // namespace optrail::ops
