// Layer normalization of rows: lib/norm.h has the formula.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam in = call.input(0), gamma = call.input(1),
                           beta = call.input(2);
  const int cols = call.dim("cols");
  Halide::Var x("x"), y("y");
  Halide::RDom c(0, cols, "c");
  Halide::Func total("total"), squares("squares"), rstd("rstd"), norm("norm");
  total(y) = 0.0f;
  total(y) += in(c, y);
  const Halide::Expr mean = total(y) * (1.0f / static_cast<float>(cols));
  squares(y) = 0.0f;
  squares(y) += (in(c, y) - mean) * (in(c, y) - mean);
  rstd(y) = 1.0f / Halide::sqrt(squares(y) * (1.0f / static_cast<float>(cols)) +
                                1e-5f);
  norm(x, y) = (in(x, y) - mean) * rstd(y) * gamma(x) + beta(x);
  if (call.variant("statistics", "none") == "none") return norm;
  Halide::Func means("means");
  means(y) = mean;
  return {norm, means, rstd};
}
