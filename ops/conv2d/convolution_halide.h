#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_

// A convolution of images, channels last, in Halide, alone and as the first
// stage of fused forms: convolution.h has the formula.

#include "ops/halide/algorithm.h"

namespace optrail::ops {

// y(k, x, y, n) of input 0, the images, and input 1, the filters.
inline Halide::Func Convolution(const halide::Call& call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1);
  const int padding = call.attribute("padding", 0);
  const int stride = call.attribute("stride", 1);
  const int w = call.dim("w"), h = call.dim("h");
  Halide::Var k("k"), x("x"), y("y"), n("n"), c("c");
  Halide::RDom r(0, call.dim("c"), 0, call.dim("s"), 0, call.dim("r"), "r");
  Halide::Func padded("padded"), conv("conv");
  const Halide::Expr at_x = x - padding, at_y = y - padding;
  padded(c, x, y, n) =
      padding == 0
          ? Halide::Expr(in(c, x, y, n))
          : Halide::select(at_x >= 0 && at_x < w && at_y >= 0 && at_y < h,
                           in(c, Halide::clamp(at_x, 0, w - 1),
                              Halide::clamp(at_y, 0, h - 1), n),
                           0.0f);
  conv(k, x, y, n) = 0.0f;
  conv(k, x, y, n) += padded(r.x, x * stride + r.y, y * stride + r.z, n) *
                      weights(k, r.x, r.y, r.z);
  return conv;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_
