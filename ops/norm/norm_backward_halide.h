#ifndef OPTRAIL_OPS_NORM_NORM_BACKWARD_HALIDE_H_
#define OPTRAIL_OPS_NORM_NORM_BACKWARD_HALIDE_H_

// The gradients of layer_norm (centred) and rms_norm in Halide: norm.h has the
// formulas.

#include "ops/halide/algorithm.h"
#include "ops/lib/line_halide.h"

namespace optrail::ops {

inline halide::Results NormBackward(const halide::Call& call, bool centred) {
  const Halide::ImageParam dy = call.input(0), in = call.input(1),
                           gamma = call.input(2), rstd = call.inputs.back();
  const int cols = call.dim("cols");
  Halide::Var x("x"), y("y");
  Halide::RDom r(0, call.dim("rows"), "r");
  Halide::Func h("h"), dx("dx"), dgamma("dgamma"), dbeta("dbeta");
  h(x, y) = centred ? (in(x, y) - call.input(3)(y)) * rstd(y)
                    : Halide::Expr(in(x, y)) * rstd(y);
  const Halide::Func sum_g =
      LineSum("sum_g", {y}, cols,
              [&](const Halide::Expr& c) { return dy(c, y) * gamma(c); });
  const Halide::Func sum_gh = LineSum(
      "sum_gh", {y}, cols,
      [&](const Halide::Expr& c) { return dy(c, y) * gamma(c) * h(c, y); });
  const float share = 1.0f / static_cast<float>(cols);
  const Halide::Expr mean_g = centred ? sum_g(y) * share : Halide::Expr(0.0f);
  dx(x, y) =
      rstd(y) * (dy(x, y) * gamma(x) - mean_g - h(x, y) * (sum_gh(y) * share));
  dgamma(x) = 0.0f;
  dgamma(x) += dy(x, r) * h(x, r);
  if (!centred) return {dx, dgamma};
  dbeta(x) = 0.0f;
  dbeta(x) += dy(x, r);
  return {dx, dgamma, dbeta};
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_NORM_NORM_BACKWARD_HALIDE_H_
