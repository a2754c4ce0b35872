// y[c, r] = x[r, c].

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Transpose : public FloatOperator {
 public:
  Transpose() : FloatOperator("transpose", {"rows", "cols"}) {}

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{
        {"x", type, {rows, cols}, Role::kInput},
        {"y", type, {cols, rows}, Role::kOutput},
    };
  }

  // Nothing is computed; one per element moved, so that rates can be told.
  double Flop(const proto::Shape& shape) const override {
    return static_cast<double>(shape.dims(0).value()) *
           static_cast<double>(shape.dims(1).value());
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    std::vector<double> y(operands[0].size());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        y[c * rows + r] = operands[0][r * cols + c];
      }
    }
    return {std::move(y)};
  }

  // Values are moved as they are.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0};
  }
};

OPTRAIL_REGISTER_OPERATOR(Transpose)

}  // namespace
}  // namespace optrail::ops
