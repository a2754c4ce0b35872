// A convolution, a scale and a shift per channel, and relu.

#include "ops/conv2d/convolution_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  Halide::Var k("k"), x("x"), y("y"), n("n");
  Halide::Func conv = optrail::ops::Convolution(call), fused("fused");
  const Halide::Expr v = conv(k, x, y, n) * call.input(2)(k) + call.input(3)(k);
  fused(k, x, y, n) = Halide::select(v < 0.0f, 0.0f, v);
  return fused;
}
