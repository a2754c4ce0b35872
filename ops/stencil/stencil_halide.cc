// A chain of 3 x 3 stencils: a stage for each step.

#include "ops/halide/algorithm.h"

OPTRAIL_HALIDE_ALGORITHM(call) {
  const Halide::ImageParam weights = call.input(1);
  const int steps = call.attribute("steps", 2);
  Halide::Var x("x"), y("y");
  Halide::Func step = call.input(0);
  for (int t = 0; t < steps; ++t) {
    Halide::Func next("step" + std::to_string(t));
    Halide::Expr sum = 0.0f;
    for (int tap = 0; tap < 9; ++tap) {
      sum += weights(tap % 3, tap / 3) * step(x + tap % 3, y + tap / 3);
    }
    next(x, y) = sum;
    step = next;
  }
  return step;
}
