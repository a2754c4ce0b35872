// c[i] = a[i] * b[i], either of them stored transposed.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam a = call.input(0), b = call.input(1);
  const std::string transposed = call.variant("transposed", "none");
  Halide::Var x("x"), y("y"), i("i");
  Halide::RDom k(0, call.dim("k"), "k");
  Halide::Func c("c");
  c(x, y, i) = 0.0f;
  c(x, y, i) += (transposed == "a" ? a(y, k, i) : a(k, y, i)) *
                (transposed == "b" ? b(k, x, i) : b(x, k, i));
  return c;
}
