// y = 2 x.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Scale : public Operator {
 public:
  std::string name() const override { return "scale"; }
  std::vector<std::string> dims() const override { return {"n"}; }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    return std::vector<OperandSpec>{
        {"x", proto::F32, {n}, Role::kInput},
        {"y", proto::F32, {n}, Role::kOutput},
    };
  }
  double Flop(const proto::Shape& shape) const override {
    return static_cast<double>(shape.dims(0).value());
  }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    std::vector<double> y = operands[0];
    for (double& value : y) value *= 2;
    return {y};
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0x1.0p-24};
  }
};

OPTRAIL_REGISTER_OPERATOR(Scale)

}  // namespace
}  // namespace optrail::ops
