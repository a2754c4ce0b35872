// y = the sum of x[rows, cols] over its columns, its rows or all of it.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0);
  const std::string axis = call.variant("axis", "cols");
  const int rows = call.dim("rows"), cols = call.dim("cols");
  Halide::Var i("i");
  Halide::Func sum("sum"), line("line");
  sum(i) = 0.0f;
  if (axis == "cols") {
    Halide::RDom c(0, cols, "c");
    sum(i) += in(c, i);
  } else if (axis == "rows") {
    Halide::RDom r(0, rows, "r");
    sum(i) += in(i, r);
  } else {
    // Row by row first, so that no sum has too many terms.
    Halide::RDom c(0, cols, "c"), r(0, rows, "r");
    line(i) = 0.0f;
    line(i) += in(c, i);
    sum(i) += line(r);
  }
  return sum;
}
