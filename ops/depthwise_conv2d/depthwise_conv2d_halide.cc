// A convolution of every channel by itself, channels last.

#include "ops/halide/algorithm.h"
#include "ops/lib/padded_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1);
  const int padding = call.attribute("padding", 0);
  const int stride = call.attribute("stride", 1);
  Halide::Var c("c"), x("x"), y("y"), n("n");
  Halide::RDom r(0, call.dim("s"), 0, call.dim("r"), "r");
  const Halide::Func padded =
      optrail::ops::Padded(in, padding, call.dim("w"), call.dim("h"));
  Halide::Func conv("conv");
  conv(c, x, y, n) = 0.0f;
  conv(c, x, y, n) +=
      padded(c, x * stride + r.x, y * stride + r.y, n) * weights(c, r.x, r.y);
  return conv;
}
