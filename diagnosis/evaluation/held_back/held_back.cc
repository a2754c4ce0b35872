// A filter down the columns with a known bottleneck: the second set of kernels
// for the evaluation of diagnoses, written when the diagnosis was done. Not
// listed, and part of no workload.
//
//   y[r][c] = sum of w[k] * x[r + k][c] over `taps`;  m[r] = largest y[r]

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/attributes.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

constexpr int64_t kMostTaps = 32;

class HeldBack : public Operator {
 public:
  std::string name() const override { return "held_back"; }
  std::vector<std::string> dims() const override { return {"rows", "cols"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("taps", 4, /*min=*/1, /*max=*/kMostTaps)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    if (cols % 64 != 0 || rows % 8 != 0) {
      return absl::InvalidArgumentError(
          "expected rows in multiples of 8 and cols of 64");
    }
    const int64_t taps = IntAttributeOf(*this, shape, "taps");
    return std::vector<OperandSpec>{
        {"x", proto::F32, {rows + taps - 1, cols}, Role::kInput},
        {"w", proto::F32, {taps}, Role::kInput},
        {"y", proto::F32, {rows, cols}, Role::kOutput},
        {"m", proto::F32, {rows}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const double elements = static_cast<double>(shape.dims(0).value()) *
                            static_cast<double>(shape.dims(1).value());
    return elements * 2. *
           static_cast<double>(IntAttributeOf(*this, shape, "taps"));
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const auto taps = static_cast<size_t>(IntAttributeOf(*this, shape, "taps"));
    const auto rows = static_cast<size_t>(shape.dims(0).value());
    const auto cols = static_cast<size_t>(shape.dims(1).value());
    const std::vector<double>& x = operands[0];
    const std::vector<double>& w = operands[1];
    std::vector<double> y(rows * cols);
    std::vector<double> m(rows, -std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < rows * cols; ++i) {
      for (size_t k = 0; k < taps; ++k) y[i] += w[k] * x[i + k * cols];
      m[i / cols] = std::max(m[i / cols], y[i]);
    }
    return {std::move(y), std::move(m)};
  }

  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {1e-3, 1e-4};
  }
};

OPTRAIL_REGISTER_OPERATOR(HeldBack)

}  // namespace
}  // namespace optrail::ops
