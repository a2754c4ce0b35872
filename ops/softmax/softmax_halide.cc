// y[r, c] = e^(x[r, c] - max x[r, :]) / sum of those over the row.

#include "ops/halide/algorithm.h"
#include "ops/lib/exp_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0);
  Halide::Var x("x"), y("y");
  Halide::RDom c(0, call.dim("cols"), "c");
  Halide::Func max("max"), power("power"), sum("sum"), softmax("softmax");
  max(y) = Halide::Float(32).min();
  max(y) = Halide::max(max(y), in(c, y));
  power(x, y) = optrail::ops::ExpOfNegative(in(x, y) - max(y));
  sum(y) = 0.0f;
  sum(y) += power(c, y);
  // One division for a row.
  softmax(x, y) = power(x, y) * (1.0f / sum(y));
  return softmax;
}
