#ifndef OPTRAIL_OPS_CONV2D_PIXELS_H_
#define OPTRAIL_OPS_CONV2D_PIXELS_H_

// Pixels as the A of a convolution's implicit product: a row has all values
// under the filter for an output pixel.
//
//   GatherPixels(size, x, row, rows, 0, size.depth(), size.depth(), space);

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/conv2d/convolution.h"
#include "ops/lib/blocks.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {

// `count` values of x, which are floats or become some.
inline void CopyValues(const float* x, int64_t count, float* to) {
  std::memcpy(to, x, count * sizeof(float));
}
inline void CopyValues(const uint16_t* x, int64_t count, float* to) {
  Widen(x, 1, count, count, to, count);
}
inline void CopyValues(const uint16_t* x, int64_t count, uint16_t* to) {
  std::memcpy(to, x, count * sizeof(uint16_t));
}

// Gathers steps [step, step + steps) of rows [row, row + rows) of A, which come
// to lie `stride` apart.
template <class T, class To>
void GatherPixels(const ConvolutionSize& size, const T* x, int64_t row,
                  int64_t rows, int64_t step, int64_t steps, int64_t stride,
                  To* space) {
  const int64_t line_depth = size.s * size.c;
  for (int64_t i = row; i < row + rows; ++i) {
    const int64_t q = i % size.q;
    const int64_t p = i / size.q % size.p;
    const int64_t image = i / size.q / size.p;
    const int64_t col = q * size.stride - size.padding;
    // The filter's columns that are inside the image.
    const int64_t begin = std::clamp<int64_t>(-col, 0, size.s);
    const int64_t end = std::clamp<int64_t>(size.w - col, begin, size.s);
    To* to = space + (i - row) * stride;
    for (int64_t at = step; at < step + steps;) {
      const int64_t r = at / line_depth;
      const int64_t line = p * size.stride + r - size.padding;
      // The steps of this row of the filter.
      const int64_t first = at - r * line_depth;
      const int64_t last = std::min(line_depth, step + steps - r * line_depth);
      const bool inside = line >= 0 && line < size.h;
      const int64_t copied =
          inside ? std::clamp(begin * size.c, first, last) : last;
      const int64_t after =
          inside ? std::clamp(end * size.c, copied, last) : last;
      std::fill_n(to, copied - first, To{});
      if (after > copied) {
        CopyValues(
            x + ((image * size.h + line) * size.w + col) * size.c + copied,
            after - copied, to + copied - first);
      }
      std::fill_n(to + after - first, last - after, To{});
      to += last - first;
      at += last - first;
    }
  }
}

// The rows of an implicit product's A: pixels under the filter.
template <class T>
class PixelRows final : public GatheredRows {
 public:
  PixelRows(const ConvolutionSize& size, const T* x) : size_(size), x_(x) {}

  void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
            int64_t stride, float* to) const override {
    GatherPixels(size_, x_, row, rows, step, steps, stride, to);
  }
  void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
            int64_t stride, uint16_t* to) const override {
    if constexpr (std::is_same_v<T, uint16_t>) {
      GatherPixels(size_, x_, row, rows, step, steps, stride, to);
    }
  }

 private:
  const ConvolutionSize& size_;
  const T* const x_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_PIXELS_H_
