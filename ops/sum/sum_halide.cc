// y = the sum of x[rows, cols] over its columns, its rows or all of it.

#include "ops/halide/algorithm.h"
#include "ops/lib/line_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0);
  const std::string axis = call.variant("axis", "cols");
  const int rows = call.dim("rows"), cols = call.dim("cols");
  Halide::Var i("i");
  const auto of_row = [&](const std::string& name) {
    return optrail::ops::LineSum(
        name, {i}, cols, [&](const Halide::Expr& c) { return in(c, i); });
  };
  if (axis == "cols") return of_row("sum");
  // Of all of it row by row first, so that no sum has too many terms.
  Halide::Func sum("sum");
  Halide::RDom r(0, rows, "r");
  sum(i) = 0.0f;
  if (axis == "rows") {
    sum(i) += in(i, r);
  } else {
    sum(i) += of_row("line")(r);
  }
  return sum;
}
