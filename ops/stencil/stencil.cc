// A chain of 3 x 3 stencils: with x_0 = x [h, w] and `steps` of them
//
//   x_{t+1}[i, j] = sum over a, b < 3 of weights[a, b] * x_t[i + a, j + b]
//
// y = x_steps [h - 2 steps, w - 2 steps]: what has all its neighbours. Filters
// of images and explicit solvers are such; what is worth computing twice, so
// that steps meet in a cache, is the question (Ragan-Kelley et al., "Halide",
// PLDI 2013).

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Stencil : public Operator {
 public:
  std::string name() const override { return "stencil"; }
  std::vector<std::string> dims() const override { return {"h", "w"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("steps", 2, /*min=*/1, /*max=*/16)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    if (s.rows() < 1 || s.cols() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "stencil: nothing is left of ", s.h, " x ", s.w, " after ", s.steps,
          " steps, each of which takes two rows and two columns"));
    }
    return std::vector<OperandSpec>{
        {"x", proto::F32, {s.h, s.w}},
        // Nine of them add up to about 1.
        {"weights", proto::F32, {3, 3}, Role::kInput, 0, -0.1, 0.3},
        {"y", proto::F32, {s.rows(), s.cols()}, Role::kOutput}};
  }

  // The least work of any kernel.
  double Flop(const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    double flop = 0;
    for (int64_t t = 1; t <= s.steps; ++t) {
      flop += 18 * static_cast<double>(s.h - 2 * t) *
              static_cast<double>(s.w - 2 * t);
    }
    return flop;
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const Size s = SizeOf(shape);
    std::vector<double> x = operands[0];
    for (int64_t t = 1; t <= s.steps; ++t) {
      const int64_t rows = s.h - 2 * t, cols = s.w - 2 * t;
      std::vector<double> next(rows * cols);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          for (int64_t tap = 0; tap < 9; ++tap) {
            next[i * cols + j] +=
                operands[1][tap] * x[(i + tap / 3) * (cols + 2) + j + tap % 3];
          }
        }
      }
      x = std::move(next);
    }
    return {std::move(x)};
  }

  // In units of 2^-24: a step makes values up to 2.7 times as large and rounds
  // nine products and sums.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto steps = static_cast<double>(SizeOf(shape).steps);
    return {20 * steps * std::pow(2.7, steps) * 0x1.0p-24, 0};
  }

 private:
  struct Size {
    int64_t h, w, steps;
    int64_t rows() const { return h - 2 * steps; }
    int64_t cols() const { return w - 2 * steps; }
  };
  Size SizeOf(const proto::Shape& shape) const {
    return {shape.dims(0).value(), shape.dims(1).value(),
            IntAttributeOf(*this, shape, "steps")};
  }
};

OPTRAIL_REGISTER_OPERATOR(Stencil)

}  // namespace
}  // namespace optrail::ops
