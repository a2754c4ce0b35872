// c[m, n] = a[m, k] * b[k, n]: the operator bound by arithmetic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Matmul : public Operator {
 public:
  std::string name() const override { return "matmul"; }
  std::vector<std::string> dims() const override { return {"m", "n", "k"}; }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  // With 16 bits inputs are normal, as activations and weights roughly are:
  // speed is bound by power there.
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    OperandSpec a{"a", type, {size.m, size.k}, Role::kInput};
    OperandSpec b{"b", type, {size.k, size.n}, Role::kInput};
    a.normal = b.normal = type != proto::F32;
    return std::vector<OperandSpec>{
        std::move(a),
        std::move(b),
        {"c", type, {size.m, size.n}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) *
           static_cast<double>(size.k);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const Size size = SizeOf(shape);
    return {ReferenceProduct(size.m, size.n, size.k, operands[0], operands[1])};
  }

  bool HasPartialReference(const proto::Shape& shape) const override {
    return true;
  }

  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    const Size size = SizeOf(shape);
    return ReferenceProduct(
        1, size.n, size.k,
        absl::MakeConstSpan(operands[0]).subspan(row * size.k, size.k),
        operands[1]);
  }

  // a (b x)
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const override {
    const Size size = SizeOf(shape);
    return ReferenceProduct(
        size.m, count, size.k, operands[0],
        ReferenceProduct(size.k, count, size.n, operands[1], x));
  }

  // With u = 2^-24: a running sum of k products of numbers uniform in [-1, 1)
  // is a random walk of about sqrt(steps) / 3, and each step rounds it by
  // about 0.4 u of itself, so that the error has a deviation of 0.1 k u (the
  // zero-mean case of Higham and Mary, "Sharper probabilistic backward error
  // analysis for basic linear algebra kernels", 2020; the bound that holds for
  // sure, k u sum |products|, is hundreds of times as wide). It is a sum of
  // products of two nearly normal numbers, the walk and the rounding, so that
  // its tail falls only like e^-x: 7 deviations do happen, 40 do not. A product
  // that is missing, or taken in 16 bits, is off by 1000 times as much.
  //
  // With 16 bits products are exact in f32, numbers have a deviation of 1 and
  // not 1/3, and tensor cores cut sums off where others round them: four times
  // as much. Then the result is rounded to 16 bits, which is more than all of
  // that.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const double summed =
        4.0 * static_cast<double>(SizeOf(shape).k) * 0x1.0p-24;
    if (shape.data_types(0) == proto::F32) return {summed, 0};
    const Rounding rounding = RoundingOf(shape.data_types(0));
    return {4.0 * summed + rounding.absolute, rounding.relative};
  }

 private:
  struct Size {
    int64_t m, n, k;
  };
  static Size SizeOf(const proto::Shape& shape) {
    return {shape.dims(0).value(), shape.dims(1).value(),
            shape.dims(2).value()};
  }
};

OPTRAIL_REGISTER_OPERATOR(Matmul)

}  // namespace
}  // namespace optrail::ops
