#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_

// A convolution of images, channels last, in Halide, alone and as the first
// stage of fused forms: convolution.h has the formula.

#include "ops/halide/algorithm.h"
#include "ops/lib/padded_halide.h"

namespace optrail::ops {

// y(k, x, y, n) of input 0, the images, and input 1, the filters.
inline Halide::Func Convolution(const halide::Call& call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1);
  const int padding = call.attribute("padding", 0);
  const int stride = call.attribute("stride", 1);
  Halide::Var k("k"), x("x"), y("y"), n("n"), c("c");
  Halide::RDom r(0, call.dim("c"), 0, call.dim("s"), 0, call.dim("r"), "r");
  const Halide::Func padded = Padded(in, padding, call.dim("w"), call.dim("h"));
  Halide::Func conv("conv");
  conv(k, x, y, n) = 0.0f;
  conv(k, x, y, n) += padded(r.x, x * stride + r.y, y * stride + r.z, n) *
                      weights(k, r.x, r.y, r.z);
  return conv;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_HALIDE_H_
