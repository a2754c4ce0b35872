#include "ops/product/cpu/pairs.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/lib/blocks.h"
#include "ops/product/cpu/blocked_product.h"

namespace optrail::ops {
namespace {

// Whole numbers, which have no more digits than bfloat16.
std::vector<uint16_t> WholeNumbers(int64_t count, Rng& rng) {
  std::vector<uint16_t> numbers(count);
  for (uint16_t& number : numbers) {
    const auto value = static_cast<float>(rng.UniformInt(17)) - 8.0f;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    number = static_cast<uint16_t>(bits >> 16);
  }
  return numbers;
}

std::vector<float> Floats(const std::vector<uint16_t>& numbers) {
  std::vector<float> floats(numbers.size());
  Widen(numbers.data(), 1, numbers.size(), numbers.size(), floats.data(),
        numbers.size());
  return floats;
}

TEST(PairPanels, HoldTwoRowsInOne) {
  Rng rng(1);
  const int64_t width = 40, columns = 97, k = 7, step = 4 * width + 3;
  const std::vector<uint16_t> b = WholeNumbers(k * columns, rng);
  std::vector<float> panels(3 * step, 7.0f);
  PackPairPanels(width, columns, k, b.data(), columns, step, panels.data());
  for (int64_t panel = 0; panel < 3; ++panel) {
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t c = 0; c < width; ++c) {
        uint16_t pair[2];
        std::memcpy(pair, &panels[panel * step + row / 2 * width + c],
                    sizeof(pair));
        const int64_t column = panel * width + c;
        EXPECT_EQ(pair[row % 2],
                  row < k && column < columns ? b[row * columns + column] : 0)
            << "row " << row << " of column " << column;
      }
    }
  }
  EXPECT_EQ(panels[4 * width], 7.0f) << "written between panels";
}

TEST(PairPanels, MultiplyAsFloatsDo) {
  if (FindPairTile(6, 4).plain_a == nullptr) {
    GTEST_SKIP() << "no instructions for pairs of bfloat16";
  }
  Rng rng(2);
  for (const int rows : {1, 6, 9, 14}) {
    for (const int vectors : {1, 2, 4}) {
      Blocking blocking;
      blocking.tile = FindPairTile(rows, vectors);
      if (blocking.tile.plain_a == nullptr) continue;
      blocking.mc = 2 * rows;
      blocking.nc = 2 * blocking.tile.columns;
      blocking.kc = 8;
      blocking.pack_a = false;
      blocking.b_in_panels = true;
      for (const ProductSize& size :
           {ProductSize{1, 1, 2}, ProductSize{29, 67, 38},
            ProductSize{4 * rows, 4 * blocking.tile.columns, 16},
            ProductSize{5 * rows + 1, 5 * blocking.tile.columns + 1, 34}}) {
        const int64_t pairs = size.k / 2;
        const std::vector<uint16_t> a = WholeNumbers(size.m * size.k, rng);
        const std::vector<uint16_t> b = WholeNumbers(size.k * size.n, rng);
        const std::vector<float> wide_a = Floats(a), wide_b = Floats(b);
        const PackedB packed = {blocking.tile.columns, pairs};
        std::vector<float> panels(packed.floats(size.n));
        PackPairPanels(blocking.tile.columns, size.n, size.k, b.data(), size.n,
                       packed.panel_floats(), panels.data());
        const ProductSize size_of_pairs = {size.m, size.n, pairs};
        std::vector<float> c(size.m * size.n);
        const auto multiply = [&](const Result& result) {
          const BlockedProduct product(blocking, size_of_pairs);
          std::vector<float> workspace(product.workspace_floats());
          product.Multiply(size_of_pairs,
                           {{reinterpret_cast<const float*>(a.data()), pairs}},
                           {packed.From(panels.data(), 0)}, result,
                           workspace.data());
        };
        Result plain;
        plain.data = c.data();
        plain.stride = size.n;
        multiply(plain);
        for (int64_t i = 0; i < size.m; ++i) {
          for (int64_t j = 0; j < size.n; ++j) {
            float expected = 0;
            for (int64_t p = 0; p < size.k; ++p) {
              expected += wide_a[i * size.k + p] * wide_b[p * size.n + j];
            }
            ASSERT_EQ(c[i * size.n + j], expected)
                << rows << " x " << vectors << " at " << i << ", " << j;
          }
        }

        // The same ended and rounded on its way into a wider matrix.
        const std::vector<float> scale = Floats(WholeNumbers(size.n, rng));
        const std::vector<float> shift = Floats(WholeNumbers(size.n, rng));
        const int64_t stride = size.n + 3;
        for (const Epilogue& epilogue :
             {Epilogue(), Epilogue{nullptr, shift.data(), Activation::kRelu},
              Epilogue{scale.data(), shift.data(), Activation::kNone},
              Epilogue{scale.data(), nullptr, Activation::kRelu}}) {
          std::vector<float> ended = c;
          ScaleShiftActivate(epilogue, ended.data(), size.m, size.n, size.n);
          std::vector<uint16_t> expected(size.m * stride, 7);
          RoundToBf16(ended.data(), size.m, size.n, size.n, expected.data(),
                      stride);
          for (const bool a_panel_stays : {false, true}) {
            blocking.a_panel_stays = a_panel_stays;
            std::vector<float> sums(size.m * size.n);
            std::vector<uint16_t> rounded(size.m * stride, 7);
            Result result;
            result.data = sums.data();
            result.stride = size.n;
            result.epilogue = epilogue;
            result.rounded = rounded.data();
            result.rounded_stride = stride;
            multiply(result);
            ASSERT_EQ(rounded, expected) << rows << " x " << vectors;
          }
        }
      }
    }
  }
}

TEST(PairPanels, RoundsAsOthersDo) {
  if (FindPairTile(6, 4).plain_a == nullptr) {
    GTEST_SKIP() << "no instructions for pairs of bfloat16";
  }
  Rng rng(3);
  const int64_t rows = 3, cols = 37, ldy = 40;
  std::vector<float> x(rows * cols);
  for (float& value : x) value = static_cast<float>(rng.UniformReal()) * 5 - 2;
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = -std::numeric_limits<float>::infinity();
  x[5] = std::numeric_limits<float>::max();
  x[6] = -0.0f;
  std::vector<uint16_t> y(rows * ldy, 7), expected(rows * ldy, 7);
  RoundPairSums(x.data(), rows, cols, cols, y.data(), ldy);
  RoundToBf16(x.data(), rows, cols, cols, expected.data(), ldy);
  EXPECT_TRUE(std::isnan(Floats(y)[3]));
  expected[3] = y[3];
  EXPECT_EQ(y, expected);
}

}  // namespace
}  // namespace optrail::ops
