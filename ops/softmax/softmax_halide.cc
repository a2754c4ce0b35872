// y[r, c] = e^(x[r, c] - max x[r, :]) / sum of those over the row.

#include "ops/halide/algorithm.h"
#include "ops/lib/exp_halide.h"
#include "ops/lib/line_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0);
  Halide::Var x("x"), y("y");
  const int cols = call.dim("cols");
  Halide::Func power("power"), softmax("softmax");
  const Halide::Func max = optrail::ops::LineMax(
      "max", {y}, cols, [&](const Halide::Expr& c) { return in(c, y); });
  power(x, y) = optrail::ops::ExpOfNegative(in(x, y) - max(y));
  const Halide::Func sum = optrail::ops::LineSum(
      "sum", {y}, cols, [&](const Halide::Expr& c) { return power(c, y); });
  // One division for a row.
  softmax(x, y) = power(x, y) * (1.0f / sum(y));
  return softmax;
}
