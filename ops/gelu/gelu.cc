// y = x P(N <= x) for a standard normal N (Hendrycks and Gimpel, "Gaussian
// error linear units", 2016); approximation=tanh is the formula of their paper
// that some models were trained with. -infinity gives NaN in the first, as
// -infinity times 0 does.

#include <cmath>
#include <vector>

#include "ops/core/registry.h"
#include "ops/elementwise/elementwise.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Gelu : public ElementwiseOperator {
 public:
  Gelu() : ElementwiseOperator("gelu", /*flop=*/4) {}

  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("approximation", "none", {"none", "tanh"})};
  }

  double Apply(const proto::Shape& shape, double x) const override {
    if (VariantAttributeOf(*this, shape, "approximation") == "none") {
      return 0.5 * x * std::erfc(-x * M_SQRT1_2);
    }
    const double u = 2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-u));
  }

  std::vector<double> hard_values() const override {
    return {-5.5, -9, -13, -14, -40, 1e10, -1e10, 1e30, -1e30};
  }

  // Relative, 24 units for the exponential, the polynomial and, up to x = -5,
  // the rounded exponent x^2 / 2. Absolute, what libraries lose that take x / 2
  // (1 + erf), which cancels: 1.5e-7 |x| / 2 by oneDNN. Our kernel for CPUs
  // keeps the tail (ops/lib/vector_math_test.cc). 16 bits round once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return Rounded({0x1.0p-20, 24 * 0x1.0p-24}, shape.data_types(0));
  }
};

OPTRAIL_REGISTER_OPERATOR(Gelu)

}  // namespace
}  // namespace optrail::ops
