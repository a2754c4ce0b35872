// c = a + b, element by element: the streaming operator. It does one addition
// per 12 bytes moved, so that memory, not arithmetic, decides how long it
// takes.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Add : public Operator {
 public:
  std::string name() const override { return "add"; }
  std::vector<std::string> dims() const override { return {"n"}; }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    return std::vector<OperandSpec>{
        {"a", proto::F32, {n}, Role::kInput},
        {"b", proto::F32, {n}, Role::kInput},
        {"c", proto::F32, {n}, Role::kOutput},
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

  // One rounding of a result below 2: half a unit in the last place is at most
  // 2^-24 relative to it.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0x1.0p-24};
  }
};

OPTRAIL_REGISTER_OPERATOR(Add)

}  // namespace
}  // namespace optrail::ops
