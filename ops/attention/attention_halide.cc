// y = softmax(q k^T / sqrt(d)) v for every head.

#include <cmath>

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam q = call.input(0), k = call.input(1),
                           v = call.input(2);
  const int keys = call.dim("keys"), d = call.dim("d");
  const int group = call.attribute("group", 1);
  const bool causal = call.variant("causal", "no") == "yes";
  Halide::Var x("x"), j("j"), i("i"), h("h"), n("n");
  Halide::RDom c(0, d, "c"), r(0, keys, "r");
  Halide::Func product("product"), score("score"), max("max"), power("power"),
      sum("sum"), weighted("weighted"), attention("attention");
  product(j, i, h, n) = 0.0f;
  product(j, i, h, n) += q(c, i, h, n) * k(c, j, h / group, n);
  const Halide::Expr scaled =
      product(j, i, h, n) * (1.0f / std::sqrt(static_cast<float>(d)));
  // Added, not selected: Halide 14 takes a condition around a read for a bound
  // of what is read, and then wants other tiles than the loops make.
  const Halide::Expr hidden = j > i + keys - call.dim("queries");
  const Halide::Expr mask = Halide::select(hidden, -1e30f, 0.0f);
  score(j, i, h, n) = causal ? scaled + mask : scaled;
  max(i, h, n) = Halide::Float(32).min();
  max(i, h, n) = Halide::max(max(i, h, n), score(r, i, h, n));
  power(j, i, h, n) = Halide::exp(score(j, i, h, n) - max(i, h, n));
  sum(i, h, n) = 0.0f;
  sum(i, h, n) += power(r, i, h, n);
  weighted(x, i, h, n) = 0.0f;
  weighted(x, i, h, n) += power(r, i, h, n) * v(x, r, h / group, n);
  attention(x, i, h, n) = weighted(x, i, h, n) / sum(i, h, n);
  return attention;
}
