// Root mean square normalization of rows: lib/norm.h has the formula.

#include "ops/halide/algorithm.h"
#include "ops/lib/line_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), gamma = call.input(1);
  const int cols = call.dim("cols");
  Halide::Var x("x"), y("y");
  Halide::Func rstd("rstd"), norm("norm");
  const Halide::Func squares = optrail::ops::LineSum(
      "squares", {y}, cols,
      [&](const Halide::Expr& c) { return in(c, y) * in(c, y); });
  rstd(y) = 1.0f / Halide::sqrt(squares(y) * (1.0f / static_cast<float>(cols)) +
                                1e-5f);
  norm(x, y) = in(x, y) * rstd(y) * gamma(x);
  if (call.variant("statistics", "none") == "none") return norm;
  return {norm, rstd};
}
