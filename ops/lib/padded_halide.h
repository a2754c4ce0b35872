#ifndef OPTRAIL_OPS_LIB_PADDED_HALIDE_H_
#define OPTRAIL_OPS_LIB_PADDED_HALIDE_H_

// Images with zeros around them, channels last, in Halide, as every convolution
// reads them.

#include "ops/halide/algorithm.h"

namespace optrail::ops {

// p(c, x, y, n) = in(c, x - padding, y - padding, n), 0 beside the w x h image.
//
// Whether a point is inside is asked of unsigned numbers, below 0 being far
// above w: Halide 14 looks for turns of loops in which comparisons of plain
// numbers hold, makes loops three times for it, and of tiles that overlap it
// once got wrong which turns those are.
inline Halide::Func Padded(const Halide::ImageParam& in, int padding, int w,
                           int h) {
  Halide::Var c("c"), x("x"), y("y"), n("n");
  Halide::Func padded("padded");
  if (padding == 0) {
    padded(c, x, y, n) = in(c, x, y, n);
    return padded;
  }
  const Halide::Expr at_x = x - padding, at_y = y - padding;
  const auto below = [](const Halide::Expr& at, int end) {
    return Halide::cast<uint32_t>(at) < Halide::cast<uint32_t>(end);
  };
  padded(c, x, y, n) = Halide::select(
      below(at_x, w) && below(at_y, h),
      in(c, Halide::clamp(at_x, 0, w - 1), Halide::clamp(at_y, 0, h - 1), n),
      0.0f);
  return padded;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_PADDED_HALIDE_H_
