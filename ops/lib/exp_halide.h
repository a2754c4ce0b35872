#ifndef OPTRAIL_OPS_LIB_EXP_HALIDE_H_
#define OPTRAIL_OPS_LIB_EXP_HALIDE_H_

// e^x for what is at most 0, as softmax has it, in 16 instructions for a
// vector; Halide's own exp(), which expects any x, takes 31.

#include "ops/halide/algorithm.h"

namespace optrail::ops {

// Of f32, x <= 0, within 5e-7 of e^x; 0 where that is below 2^-125. With
// x = n ln 2 + r, |r| <= ln 2 / 2, it is 2^n times Taylor's polynomial of e^r.
inline Halide::Expr ExpOfNegative(const Halide::Expr& x) {
  constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
  // -125 ln 2: n + 127 stays an exponent.
  constexpr float kLeast = -86.6433976f;
  // Conversions round towards 0.
  const Halide::Expr n =
      Halide::cast(Halide::Int(32, x.type().lanes()), x * kLog2E - 0.5f);
  const Halide::Expr r = x - Halide::cast(x.type(), n) * kLn2;
  Halide::Expr power = 1.0f / 720;
  for (const float coefficient :
       {1.0f / 120, 1.0f / 24, 1.0f / 6, .5f, 1.f, 1.f}) {
    power = power * r + coefficient;
  }
  constexpr int kFractionBits = 23;
  const Halide::Expr scaled = Halide::reinterpret(
      x.type(), Halide::reinterpret(n.type(), power) + (n << kFractionBits));
  return Halide::select(x < kLeast, 0.0f, scaled);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_EXP_HALIDE_H_
