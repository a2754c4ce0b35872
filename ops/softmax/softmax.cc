// y[r, c] = e^(x[r, c] - max x[r, :]) / sum of those over the row.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Softmax : public FloatOperator {
 public:
  Softmax() : FloatOperator("softmax", {"rows", "cols"}) {}

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const proto::DataType type = shape.data_types(0);
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    return std::vector<OperandSpec>{
        // Far apart, so that exponentials underflow, and beyond what the
        // two-pass algorithm takes on.
        {"x",
         type,
         {rows, cols},
         Role::kInput,
         0,
         -4,
         4,
         {30, -30, 88, -88, 600, -600}},
        {"y", type, {rows, cols}, Role::kOutput},
    };
  }

  // Per element: maximum, subtraction, exponential, sum, product. The
  // exponential counts as one: kernels differ in how they compute it.
  double Flop(const proto::Shape& shape) const override {
    return 5.0 * Elements(shape);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    std::vector<double> y(operands[0].size());
    for (int64_t r = 0; r < rows; ++r) {
      const double* from = &operands[0][r * cols];
      double* to = &y[r * cols];
      const double max = *std::max_element(from, from + cols);
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) {
        to[c] = std::exp(from[c] - max);
        sum += to[c];
      }
      for (int64_t c = 0; c < cols; ++c) to[c] /= sum;
    }
    return {std::move(y)};
  }

  // Relative, in units of 2^-24: 64 from subtracting the maximum (differences
  // up to 128 are rounded to 2^-18; from the exponential of larger ones nothing
  // is left), 4 from the exponential, 3 from division and scaling, and as many
  // as the longest running sum has steps, of which rounding makes a random
  // walk: 2 sqrt(cols) covers a sum in a single lane. The absolute part stands
  // for results that are flushed to zero: normal ones just above 2^-126 by
  // oneDNN, too. With 16 bits a result is rounded once
  // more, which hides most of what the exponential does: 128 more from a base-2
  // exponential whose argument is rounded.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto cols = static_cast<double>(shape.dims(1).value());
    const double computed = (72.0 + 2.0 * std::sqrt(cols)) * 0x1.0p-24;
    if (shape.data_types(0) == proto::F32) return {0x1.0p-125, computed};
    const Rounding rounding = RoundingOf(shape.data_types(0));
    return {std::max(0x1.0p-125, rounding.absolute),
            rounding.relative + computed + 128 * 0x1.0p-24};
  }

 private:
  static double Elements(const proto::Shape& shape) {
    return static_cast<double>(shape.dims(0).value()) *
           static_cast<double>(shape.dims(1).value());
  }
};

OPTRAIL_REGISTER_OPERATOR(Softmax)

}  // namespace
}  // namespace optrail::ops
