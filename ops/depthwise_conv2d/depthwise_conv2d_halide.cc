// A convolution of every channel by itself, channels last.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1);
  const int padding = call.attribute("padding", 0);
  const int stride = call.attribute("stride", 1);
  const int w = call.dim("w"), h = call.dim("h");
  Halide::Var c("c"), x("x"), y("y"), n("n");
  Halide::RDom r(0, call.dim("s"), 0, call.dim("r"), "r");
  Halide::Func padded("padded"), conv("conv");
  const Halide::Expr at_x = x - padding, at_y = y - padding;
  padded(c, x, y, n) =
      padding == 0
          ? Halide::Expr(in(c, x, y, n))
          : Halide::select(at_x >= 0 && at_x < w && at_y >= 0 && at_y < h,
                           in(c, Halide::clamp(at_x, 0, w - 1),
                              Halide::clamp(at_y, 0, h - 1), n),
                           0.0f);
  conv(c, x, y, n) = 0.0f;
  conv(c, x, y, n) +=
      padded(c, x * stride + r.x, y * stride + r.y, n) * weights(c, r.x, r.y);
  return conv;
}
