// A convolution, a scale and a shift per channel, and relu.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1);
  const int padding = call.attribute("padding", 0);
  const int stride = call.attribute("stride", 1);
  const int w = call.dim("w"), h = call.dim("h");
  Halide::Var k("k"), x("x"), y("y"), n("n"), c("c");
  Halide::RDom r(0, call.dim("c"), 0, call.dim("s"), 0, call.dim("r"), "r");
  Halide::Func padded("padded"), conv("conv"), fused("fused");
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
  const Halide::Expr v = conv(k, x, y, n) * call.input(2)(k) + call.input(3)(k);
  fused(k, x, y, n) = Halide::select(v < 0.0f, 0.0f, v);
  return fused;
}
