#ifndef OPTRAIL_OPS_CONV2D_PIXEL_LINE_H_
#define OPTRAIL_OPS_CONV2D_PIXEL_LINE_H_

// The micro-kernel of a convolution that reads pixels where they lie: a line of
// output pixels times a panel of filters. Tiles of `pixels` by some vectors of
// filters are kept in registers, one after the other, while all rows of the
// filter are added to them. What lies left and right of the image is left out:
// of the first and the last pixel of the line, steps that others have. (With 14
// pixels to a line and filters of 3 x 3 that is a twentieth of all.) Elements
// of pixels and filters are floats, or pairs of bfloat16, which an instruction
// (AVX512_BF16) multiplies and adds to one sum.
//
//   const PixelTile tile = FindPixelTile(14, 2, PixelElement::kFloat);
//   tile.multiply(call);

#include <cstdint>

namespace optrail::ops {

enum class PixelElement { kFloat, kPair };

// Steps and distances are counted in elements.
struct PixelLine {
  // Of the image, below the first column of the filter at the first output
  // pixel; where steps are left out there, it may lie before the line.
  const float* x = nullptr;
  int64_t pixel_step = 0;  // from below one output pixel to the next
  int64_t line_step = 0;   // from one line of the image to the next

  int64_t filter_rows = 0;
  int64_t row_depth = 0;  // steps of a row: columns times channels
  // What the first pixel lacks at the beginning of a row, and the last one at
  // its end: together at most all of a row.
  int64_t first_lacks = 0;
  int64_t last_lacks = 0;
  // Of pairs: a row has one more, whose second half is not the filter's, and
  // left out.
  bool ends_in_half = false;

  // Of steps of a row of the filter, row by row, `panel_step` floats apart.
  const float* panel = nullptr;
  int64_t panel_step = 0;

  float* y = nullptr;
  int64_t y_step = 0;  // floats from one output pixel to the next
  int64_t pixels = 0;  // at least those of a tile
  int64_t columns = 0;
  bool accumulate = false;  // y += instead of y =
  // While sums grow, pixels of y are prefetched, one at a time, and what is
  // read next: `next_rows` for every tile, panel_step apart.
  bool prefetch_y = false;
  const float* next = nullptr;
  int64_t next_rows = 0;
};

using PixelLineFunction = void (*)(const PixelLine&);

struct PixelTile {
  int pixels = 0;
  int columns = 0;                       // floats
  PixelLineFunction multiply = nullptr;  // nullptr: there is no such tile
};

// The tile for the best SIMD target of this machine.
PixelTile FindPixelTile(int pixels, int vectors, PixelElement element);

// That of at most so many pixels which computes a line of `length` soonest.
// There is one for every length where there is one of a single pixel.
PixelTile FindTileForLine(int pixels, int vectors, PixelElement element,
                          int64_t length);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_PIXEL_LINE_H_
