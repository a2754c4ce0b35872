#include "ops/product/cpu/micro_kernel.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/product/cpu/testing/whole_numbers.h"

namespace optrail::ops {
namespace {

// A line of `rows` whose steps are in three segments; the ends lack some. Sums
// are shifted and activated, and perhaps scaled, if anything `ends` them.
void ExpectSegments(const RegisterTile& tile, int64_t rows, int64_t columns,
                    int64_t steps, bool accumulate, bool scales,
                    bool ends = true) {
  Rng rng(rows * 100 + columns);
  const int64_t segments = 3, row_step = 5, segment_step = 7 * rows + steps;
  const std::vector<float> a =
      WholeNumbers(segments * segment_step + rows * row_step, rng);
  const std::vector<float> b =
      WholeNumbers(segments * steps * tile.columns, rng);
  const std::vector<float> scale = WholeNumbers(columns, rng);
  const std::vector<float> shift = WholeNumbers(columns, rng);
  const int64_t ldc = columns + 2;
  std::vector<float> c(rows * ldc, kGuard);
  for (int64_t i = 0; accumulate && i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) c[i * ldc + j] = 3;
  }
  TileCall call;
  call.k = steps;
  call.lda = row_step;
  call.ldb = tile.columns;
  call.ldc = ldc;
  call.rows = rows;
  call.columns = columns;
  call.accumulate = accumulate;
  call.scale = scales ? scale.data() : nullptr;
  call.shift = ends ? shift.data() : nullptr;
  call.relu = ends;
  call.segments = segments;
  call.segment_step = segment_step;
  call.first_lacks = steps / 3;
  call.last_lacks = steps / 4;
  tile.segments(call, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float expected = accumulate ? 3 : 0;
      for (int64_t s = 0; s < segments; ++s) {
        const int64_t first = i == 0 ? call.first_lacks : 0;
        const int64_t end = steps - (i == rows - 1 ? call.last_lacks : 0);
        for (int64_t p = first; p < end; ++p) {
          expected += a[s * segment_step + i * row_step + p] *
                      b[(s * steps + p) * tile.columns + j];
        }
      }
      if (ends) {
        expected = expected * (scales ? scale[j] : 1) + shift[j];
        expected = expected < 0 ? 0 : expected;
      }
      ASSERT_EQ(c[i * ldc + j], expected)
          << tile.rows << " x " << tile.columns << ": " << rows << " rows, "
          << steps << " steps, at " << i << ", " << j;
    }
    EXPECT_EQ(c[i * ldc + columns], kGuard);
    EXPECT_EQ(c[i * ldc + columns + 1], kGuard);
  }
}

TEST(MicroKernel, SumsSegmentsThatTheEndsOfALineLackInPart) {
  int tiles = 0;
  for (int height = 1; height <= 14; ++height) {
    for (int vectors = 1; vectors <= 4; ++vectors) {
      const RegisterTile tile = FindRegisterTile(height, vectors, 4);
      if (tile.segments == nullptr) continue;
      ++tiles;
      for (const int64_t rows : {height, height + 1, 2 * height, 31}) {
        for (const int64_t steps : {1, 4, 13, 24}) {
          ExpectSegments(tile, rows, tile.columns, steps, false, true);
          ExpectSegments(tile, rows, tile.columns - TileLanes() + 1, steps,
                         true, false);
          // Stored as they are, whole vectors and the last one in part.
          ExpectSegments(tile, rows, tile.columns, steps, false, false, false);
          ExpectSegments(tile, rows, tile.columns - TileLanes() + 1, steps,
                         false, false, false);
        }
      }
    }
  }
  EXPECT_GT(tiles, 7);
}

}  // namespace
}  // namespace optrail::ops
