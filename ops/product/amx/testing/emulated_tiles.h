#ifndef OPTRAIL_OPS_PRODUCT_AMX_TESTING_EMULATED_TILES_H_
#define OPTRAIL_OPS_PRODUCT_AMX_TESTING_EMULATED_TILES_H_

// AMX's tiles in plain C++, for tests on machines without: the interface of
// AmxTiles (amx.h), what the manual says of the instructions, and a stop where
// they would fault. Slow.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "ops/lib/blocks.h"
#include "ops/product/amx/amx.h"

namespace optrail::ops {

class EmulatedTiles {
 public:
  void Configure(const TileRowCounts& rows) {
    for (const uint8_t count : rows) OPTRAIL_CHECK(count <= kTileRows);
    rows_ = rows;
    // The instruction clears all tiles.
    std::memset(data_, 0, sizeof(data_));
  }

  void Release() { rows_ = {}; }

  template <int kTile>
  void Zero() {
    OPTRAIL_CHECK(rows_[kTile] > 0) << "tile " << kTile;
    std::memset(data_[kTile], 0, sizeof(data_[kTile]));
  }

  // Rows beyond those that are read become 0.
  template <int kTile>
  void Load(const void* from, int64_t stride) {
    Zero<kTile>();
    for (int r = 0; r < rows_[kTile]; ++r) {
      std::memcpy(data_[kTile][r], static_cast<const char*>(from) + r * stride,
                  kTileBytes);
    }
  }

  template <int kTile>
  void LoadOnce(const void* from, int64_t stride) {
    Load<kTile>(from, stride);
  }

  template <int kTile>
  void Store(void* to, int64_t stride) {
    OPTRAIL_CHECK(rows_[kTile] > 0) << "tile " << kTile;
    for (int r = 0; r < rows_[kTile]; ++r) {
      std::memcpy(static_cast<char*>(to) + r * stride, data_[kTile][r],
                  kTileBytes);
    }
  }

  template <int kSums, int kLeft, int kRight>
  void MultiplyAdd() {
    OPTRAIL_CHECK(rows_[kSums] > 0 && rows_[kLeft] == rows_[kSums] &&
                  rows_[kRight] == kTileRows)
        << "tiles " << kSums << ", " << kLeft << ", " << kRight;
    for (int r = 0; r < rows_[kSums]; ++r) {
      for (int column = 0; column < kTileColumns; ++column) {
        // First and second steps of pairs are added up apart.
        float sums[2] = {};
        for (int step = 0; step < kTileSteps; ++step) {
          const float product_and_sum =
              std::fma(Element(data_[kLeft][r], step),
                       Element(data_[kRight][step / 2], 2 * column + step % 2),
                       sums[step % 2]);
          sums[step % 2] = Flushed(product_and_sum);
        }
        float sum = 0;
        std::memcpy(&sum, data_[kSums][r] + column * 4, 4);
        sum = Flushed(Flushed(sum) + Flushed(sums[0] + sums[1]));
        std::memcpy(data_[kSums][r] + column * 4, &sum, 4);
      }
    }
  }

  static void Round(const Epilogue& epilogue, const float* x, int64_t rows,
                    int64_t columns, int64_t ldx, uint16_t* y, int64_t ldy) {
    std::vector<float> ended(rows * columns);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x + r * ldx, columns, ended.data() + r * columns);
    }
    ScaleShiftActivate(epilogue, ended.data(), rows, columns, columns);
    RoundToBf16(ended.data(), rows, columns, columns, y, ldy);
  }

 private:
  static float Flushed(float x) {
    return std::fabs(x) < std::numeric_limits<float>::min()
               ? std::copysign(0.0f, x)
               : x;
  }

  static float Element(const char* row, int index) {
    uint16_t bits = 0;
    std::memcpy(&bits, row + index * 2, 2);
    const uint32_t wide = uint32_t{bits} << 16;
    float x = 0;
    std::memcpy(&x, &wide, 4);
    return Flushed(x);
  }

  TileRowCounts rows_ = {};
  char data_[8][kTileRows][kTileBytes] = {};
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_TESTING_EMULATED_TILES_H_
