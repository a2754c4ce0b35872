// y[m, n] = f(x[m, k] * w[k, n] + bias[n]).

#include "ops/halide/algorithm.h"
#include "ops/lib/gelu_halide.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), weights = call.input(1),
                           bias = call.input(2);
  const std::string f = call.variant("activation", "none");
  Halide::Var x("x"), y("y");
  Halide::RDom k(0, call.dim("k"), "k");
  Halide::Func product("product"), biased("biased"), linear("linear");
  product(x, y) = 0.0f;
  product(x, y) += in(k, y) * weights(x, k);
  biased(x, y) = product(x, y) + bias(x);
  const Halide::Expr v = biased(x, y);
  linear(x, y) = f == "relu"   ? Halide::select(v < 0.0f, 0.0f, v)
                 : f == "gelu" ? optrail::ops::Gelu(v)
                               : v;
  return linear;
}
