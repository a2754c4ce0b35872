// y[b] = the sum of table[indices[b, i]] over the lookups i of bag b.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam table = call.input(0), indices = call.input(1);
  Halide::Var x("x"), b("b");
  Halide::RDom i(0, call.dim("lookups"), "i");
  Halide::Func bag("bag");
  // Clamped, or the code would want a table for every number.
  const Halide::Expr row =
      Halide::clamp(indices(i, b), 0, call.dim("rows") - 1);
  bag(x, b) = 0.0f;
  bag(x, b) += table(x, row);
  return bag;
}
