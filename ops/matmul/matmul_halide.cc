// c[y, x] = sum over k of a[y, k] * b[k, x].

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam a = call.input(0), b = call.input(1);
  Halide::Var x("x"), y("y");
  Halide::RDom k(0, call.dim("k"), "k");
  Halide::Func c("c");
  c(x, y) = 0.0f;
  c(x, y) += a(k, y) * b(x, k);
  return c;
}
