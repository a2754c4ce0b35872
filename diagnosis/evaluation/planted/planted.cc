// A map and a sum of rows with a known bottleneck: for the evaluation of
// diagnoses. Not listed, and part of no workload.
//
//   v = x, then `depth` times v = v * x / 2 + 1/2;  y = v;  s[row] = sum of v

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

class Planted : public Operator {
 public:
  std::string name() const override { return "planted"; }
  std::vector<std::string> dims() const override { return {"rows", "cols"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("depth", 4, /*min=*/1, /*max=*/256)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    if (cols % 64 != 0 && cols > 32) {
      return absl::InvalidArgumentError(
          "cols: expected a multiple of 64, or at most 32");
    }
    return std::vector<OperandSpec>{
        {"x", proto::F32, {rows, cols}, Role::kInput},
        {"y", proto::F32, {rows, cols}, Role::kOutput},
        {"s", proto::F32, {rows}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const double elements = static_cast<double>(shape.dims(0).value()) *
                            static_cast<double>(shape.dims(1).value());
    return elements *
           (2. * static_cast<double>(IntAttributeOf(*this, shape, "depth")) +
            1);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const int64_t depth = IntAttributeOf(*this, shape, "depth");
    const auto cols = static_cast<size_t>(shape.dims(1).value());
    std::vector<double> y = operands[0];
    std::vector<double> s(static_cast<size_t>(shape.dims(0).value()));
    for (size_t i = 0; i < y.size(); ++i) {
      const double x = y[i];
      for (int64_t step = 0; step < depth; ++step) y[i] = y[i] * x / 2 + .5;
      s[i / cols] += y[i];
    }
    return {std::move(y), std::move(s)};
  }

  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {1e-3, 1e-4};
  }
};

OPTRAIL_REGISTER_OPERATOR(Planted)

}  // namespace
}  // namespace optrail::ops
