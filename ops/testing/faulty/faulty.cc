// y = 2 * x by a kernel that misbehaves on request: for tests of whatever runs
// kernels. Not listed, and part of no workload.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Faulty : public Operator {
 public:
  std::string name() const override { return "faulty"; }
  std::vector<std::string> dims() const override { return {"n"}; }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    OperandSpec x{"x", proto::F32, {n}, Role::kInput};
    x.hard_values = {2, -3e4, 1e30};
    return std::vector<OperandSpec>{
        std::move(x),
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

  // Doubling is exact; the last bit is left to configs that count rows.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0x1p-22};
  }
};

OPTRAIL_REGISTER_OPERATOR(Faulty)

}  // namespace
}  // namespace optrail::ops
