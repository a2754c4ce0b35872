// y = x P(N <= x): gelu.cc has the formulas.

#include "ops/lib/gelu_halide.h"

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  Halide::Var i("i");
  Halide::Func gelu("gelu");
  const Halide::Expr x = call.input(0)(i);
  if (call.variant("approximation", "none") == "none") {
    gelu(i) = optrail::ops::Gelu(x);
    return gelu;
  }
  constexpr float kScale = 1.59576912f;  // 2 sqrt(2 / pi)
  const Halide::Expr u = kScale * (x + 0.044715f * x * x * x);
  // Beyond, its exponential overflows and y is x or 0.
  const Halide::Expr y =
      x / (1.0f + Halide::exp(-Halide::clamp(u, -80.0f, 80.0f)));
  gelu(i) = Halide::select(u < -80.0f, 0.0f, y);
  return gelu;
}
