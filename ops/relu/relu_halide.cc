// y = max(x, 0).

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  Halide::Var x("x");
  Halide::Func relu("relu");
  const Halide::Expr v = call.input(0)(x);
  relu(x) = Halide::select(v < 0.0f, 0.0f, v);
  return relu;
}
