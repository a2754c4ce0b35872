#ifndef OPTRAIL_OPS_LIB_GELU_HALIDE_H_
#define OPTRAIL_OPS_LIB_GELU_HALIDE_H_

// gelu(x) = x P(N <= x) as gelu and linear have it.

#include "ops/halide/algorithm.h"

namespace optrail::ops {

// Computes gelu in f32 by the error function. Infinity gives infinity,
// -infinity NaN.
inline Halide::Expr Gelu(const Halide::Expr& x) {
  constexpr float kSqrtHalf = 0.70710678f;
  // It is 1 from 4 on, and Halide's polynomial NaN where it overflows.
  const Halide::Expr u = Halide::clamp(x * kSqrtHalf, -8.0f, 8.0f);
  // In this order: x times 2 would overflow.
  return x * (0.5f * Halide::erf(u) + 0.5f);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_GELU_HALIDE_H_
