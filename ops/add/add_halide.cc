// c = a + b.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  Halide::Var x("x");
  Halide::Func c("c");
  c(x) = call.input(0)(x) + call.input(1)(x);
  return c;
}
