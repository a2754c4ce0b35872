// c = a + b, element by element: the streaming operator. It does one addition
// per 12 bytes moved, so that memory, not arithmetic, decides how long it
// takes.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Add : public FloatOperator {
 public:
  Add() : FloatOperator("add", {"n"}) {}

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{
        {"a", type, {n}, Role::kInput},
        {"b", type, {n}, Role::kInput},
        {"c", type, {n}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    return static_cast<double>(shape.dims(0).value());
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const std::vector<double>& a = operands[0];
    const std::vector<double>& b = operands[1];
    std::vector<double> c(a.size());
    for (size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
    return {c};
  }

  // One rounding. Sums of f32 and f16 are exact where they are denormal; those
  // of bf16 go through f32, whose rounding comes on top.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const proto::DataType type = shape.data_types(0);
    const double u = RoundingOf(type).relative;
    return {0, type == proto::BF16 ? u + 0x1.0p-23 : u};
  }
};

OPTRAIL_REGISTER_OPERATOR(Add)

}  // namespace
}  // namespace optrail::ops
