#ifndef OPTRAIL_OPS_LIB_LINE_HALIDE_H_
#define OPTRAIL_OPS_LIB_LINE_HALIDE_H_

// Sums and maxima along lines of memory in Halide, for lines of any length.
//
//   total = LineSum("total", {y}, cols, [&](Expr c) { return in(c, y); });
//
// Vectors of partial results (the rule rfactor) need a length that they divide.
// What is beyond the last multiple of 64 (of 16, of short lines) is a stage of
// its own: the last 64 of the line, of which a sum leaves out those that were
// counted, and a maximum does not mind. Else a row of 30,522 would be added up
// one by one.

#include <functional>
#include <string>
#include <vector>

#include "ops/halide/algorithm.h"

namespace optrail::ops {

// The value at a place of the line.
using LineValue = std::function<Halide::Expr(const Halide::Expr&)>;

namespace line {

// `value`, an f32, or 0 where it is not kept.
inline Halide::Expr Kept(const Halide::Expr& kept, const Halide::Expr& value) {
  const Halide::Type bits = Halide::UInt(32);
  // Not selected: Halide takes a condition around a read for a bound of what
  // is read, and not multiplied, for infinity times 0 is none.
  return Halide::reinterpret(value.type(),
                             Halide::reinterpret(bits, value) &
                                 Halide::select(kept, bits.max(), bits.min()));
}

inline Halide::Func Reduced(const std::string& name,
                            const std::vector<Halide::Var>& at, int extent,
                            bool is_sum, const LineValue& value) {
  const auto combined = [&](const Halide::Expr& a, const Halide::Expr& b) {
    return is_sum ? a + b : Halide::max(a, b);
  };
  const Halide::Expr none = is_sum ? 0.0f : Halide::Float(32).min();
  const std::vector<Halide::Expr> place(at.begin(), at.end());
  const auto part = [&](const std::string& of, int begin, int turns,
                        int counted) {
    Halide::Func f(of);
    const Halide::RDom r(0, turns, "r");
    const Halide::Expr v = value(r + begin);
    f(at) = none;
    f(at) =
        combined(f(place), counted > 0 && is_sum ? Kept(r >= counted, v) : v);
    return f;
  };
  constexpr int kMany = 64, kVector = 16;
  const int unit = extent >= 2 * kMany ? kMany : kVector;
  const int rest = extent % unit;
  if (rest == 0 || extent < 2 * unit) return part(name, 0, extent, 0);
  const Halide::Func most = part(name + "_most", 0, extent - rest, 0);
  const Halide::Func last =
      part(name + "_last", extent - unit, unit, unit - rest);
  Halide::Func all(name);
  all(at) = combined(most(place), last(place));
  return all;
}

}  // namespace line

// f(at) = value(0) + ... + value(extent - 1), of f32.
inline Halide::Func LineSum(const std::string& name,
                            const std::vector<Halide::Var>& at, int extent,
                            const LineValue& value) {
  return line::Reduced(name, at, extent, true, value);
}

// f(at) = the largest of value(0), ..., value(extent - 1), of f32.
inline Halide::Func LineMax(const std::string& name,
                            const std::vector<Halide::Var>& at, int extent,
                            const LineValue& value) {
  return line::Reduced(name, at, extent, false, value);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_LINE_HALIDE_H_
