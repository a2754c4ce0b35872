// y = the sum of x[rows, cols] over its columns (one value per row), its rows
// (one per column) or all of it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Sum : public FloatOperator {
 public:
  Sum() : FloatOperator("sum", {"rows", "cols"}) {}

  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("axis", "cols", {"cols", "rows", "all"})};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{
        {"x", type, {size.rows, size.cols}, Role::kInput},
        {"y", type, {size.sums}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    return static_cast<double>(size.rows) * static_cast<double>(size.cols);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const Size size = SizeOf(shape);
    std::vector<double> y(size.sums);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < size.cols; ++c) {
        y[r * size.row_step + c * size.col_step] +=
            operands[0][r * size.cols + c];
      }
    }
    return {std::move(y)};
  }

  // With u = 2^-24: a running sum of n numbers uniform in [-1, 1) is a random
  // walk of about sqrt(steps / 3), and each step rounds it by about 0.4 u of
  // itself: a deviation of 0.17 n u. Long sums have to be cut into chains of at
  // most 2^16, whose errors add up like their square root. As in products the
  // tail falls only like e^-x: 10 deviations do happen, among 4096 sums, 40 do
  // not. A number that is missing is off by hundreds of times as much. 16 bits
  // are added up in f32, too, and round the result once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    const double count = static_cast<double>(size.rows) *
                         static_cast<double>(size.cols) /
                         static_cast<double>(size.sums);
    return Rounded(
        {7 * std::sqrt(count * std::min(count, 65536.0)) * 0x1.0p-24, 0},
        shape.data_types(0));
  }

 private:
  struct Size {
    int64_t rows, cols, sums;
    int64_t row_step, col_step;  // from x's indices to y's
  };
  Size SizeOf(const proto::Shape& shape) const {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const std::string axis = VariantAttributeOf(*this, shape, "axis");
    if (axis == "cols") return {rows, cols, rows, 1, 0};
    if (axis == "rows") return {rows, cols, cols, 0, 1};
    return {rows, cols, 1, 0, 0};
  }
};

OPTRAIL_REGISTER_OPERATOR(Sum)

}  // namespace
}  // namespace optrail::ops
