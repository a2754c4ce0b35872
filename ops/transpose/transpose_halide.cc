// y[c, r] = x[r, c].

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  Halide::Var r("r"), c("c");
  Halide::Func transpose("transpose");
  transpose(r, c) = call.input(0)(c, r);
  return transpose;
}
