#include "ops/lib/blocks.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// To the nearest, the even one of two; what is left of a NaN is one.
TEST(RoundToBf16Test, RoundsToNearestEvenAndKeepsNaN) {
  const std::vector<std::pair<uint32_t, uint16_t>> cases = {
      {0x3F800000, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82},
      {0x3F808001, 0x3F81}, {0x7F7FFFFF, 0x7F80}, {0x7F800000, 0x7F80},
      {0xFF800000, 0xFF80}, {0x00000001, 0x0000}, {0x00018000, 0x0002},
      {0x80000000, 0x8000}};
  // In whole vectors and beyond their end.
  for (const int64_t columns : {1, 3, 16, 17, 40}) {
    for (const auto& [from, to] : cases) {
      const std::vector<float> x(columns, FloatOf(from));
      std::vector<uint16_t> y(columns, 0x1234);
      RoundToBf16(x.data(), 1, columns, columns, y.data(), columns);
      EXPECT_EQ(y, std::vector<uint16_t>(columns, to)) << std::hex << from;
    }
    for (const uint32_t nan :
         {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu, 0x7FC00000u}) {
      const std::vector<float> x(columns, FloatOf(nan));
      std::vector<uint16_t> y(columns);
      RoundToBf16(x.data(), 1, columns, columns, y.data(), columns);
      for (const uint16_t v : y) {
        EXPECT_TRUE(std::isnan(FloatOf(uint32_t{v} << 16))) << std::hex << nan;
      }
    }
  }
}

TEST(CopyPanelsTest, CopiesEveryColumnOnceAndNothingElse) {
  constexpr int64_t kRows = 5, kPanels = 3, kGap = 2;
  for (const int64_t width : {1, 6, 14, 16, 17, 64}) {
    const int64_t ldx = kPanels * width + 1, ldy = width + kGap;
    const int64_t step = kRows * ldy;
    std::vector<float> x(kRows * ldx);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
    std::vector<float> y(kPanels * step, -1.0f);
    CopyPanels(x.data(), kRows, kPanels, width, ldx, y.data(), ldy, step);
    for (int64_t panel = 0; panel < kPanels; ++panel) {
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < ldy; ++c) {
          EXPECT_EQ(y[panel * step + r * ldy + c],
                    c < width ? x[r * ldx + panel * width + c] : -1.0f)
              << width << " " << panel << " " << r << " " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace optrail::ops
