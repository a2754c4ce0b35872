// y[m, n] = f(x[m, k] * w[k, n] + bias[n]): a layer of a network in one pass,
// f being nothing, relu or gelu.

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

class Linear : public FloatOperator {
 public:
  Linear() : FloatOperator("linear", {"m", "n", "k"}) {}

  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("activation", "none", {"none", "relu", "gelu"})};
  }

  // Normal where matmul's are.
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const auto [m, n, k] = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    OperandSpec x{"x", type, {m, k}, Role::kInput};
    OperandSpec w{"w", type, {k, n}, Role::kInput};
    x.normal = w.normal = type != proto::F32;
    return std::vector<OperandSpec>{
        std::move(x),
        std::move(w),
        {"bias", type, {n}, Role::kInput},
        {"y", type, {m, n}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const auto [m, n, k] = SizeOf(shape);
    return (2.0 * static_cast<double>(k) + 2) * static_cast<double>(m) *
           static_cast<double>(n);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const auto [m, n, k] = SizeOf(shape);
    std::vector<double> y = ReferenceProduct(m, n, k, operands[0], operands[1]);
    AddBias(shape, operands[2], &y);
    return {std::move(y)};
  }

  // Where an activation comes after the product, rows alone are compared, and
  // only of what takes long.
  bool HasPartialReference(const proto::Shape& shape) const override {
    constexpr double kLong = 1e10;
    return VariantAttributeOf(*this, shape, "activation") == "none" ||
           Flop(shape) > kLong;
  }

  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    const auto [m, n, k] = SizeOf(shape);
    std::vector<double> y = ReferenceProduct(
        1, n, k, absl::MakeConstSpan(operands[0]).subspan(row * k, k),
        operands[1]);
    AddBias(shape, operands[2], &y);
    return y;
  }

  // x (w times) + bias times
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> times, int count) const override {
    const auto [m, n, k] = SizeOf(shape);
    if (VariantAttributeOf(*this, shape, "activation") != "none") return {};
    const std::vector<double> bias =
        ReferenceProduct(1, count, n, operands[2], times);
    std::vector<double> y =
        ReferenceProduct(m, count, k, operands[0],
                         ReferenceProduct(k, count, n, operands[1], times));
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
    return y;
  }

  // The tolerance of matmul; gelu is nowhere steeper than 1.13, and its tail
  // cancels in libraries (ops/gelu/gelu.cc). With 16 bits sums are cut off and
  // larger, as there, and the result is rounded once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto [m, n, k] = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    const double summed =
        (type == proto::F32 ? 5.0 : 20.0) * static_cast<double>(k) * 0x1.0p-24;
    return Rounded({summed + 0x1.0p-20, 0x1.0p-20}, type);
  }

 private:
  // And the activation, to whole rows of y.
  void AddBias(const proto::Shape& shape, const std::vector<double>& bias,
               std::vector<double>* y) const {
    const std::string f = VariantAttributeOf(*this, shape, "activation");
    for (size_t i = 0; i < y->size(); ++i) {
      double& value = (*y)[i];
      value += bias[i % bias.size()];
      if (f == "relu") value = value < 0 ? 0 : value;
      if (f == "gelu") value *= 0.5 * std::erfc(-value * M_SQRT1_2);
    }
  }

  struct Size {
    int64_t m, n, k;
  };
  static Size SizeOf(const proto::Shape& shape) {
    return {shape.dims(0).value(), shape.dims(1).value(),
            shape.dims(2).value()};
  }
};

OPTRAIL_REGISTER_OPERATOR(Linear)

}  // namespace
}  // namespace optrail::ops
