#ifndef OPTRAIL_OPS_ELEMENTWISE_ELEMENTWISE_H_
#define OPTRAIL_OPS_ELEMENTWISE_ELEMENTWISE_H_

// The definition that operators y[i] = f(x[i]) share.
//
//   class Relu : public ElementwiseOperator {
//    public:
//     Relu() : ElementwiseOperator("relu") {}
//     double Apply(const proto::Shape& shape, double x) const override;
//   };
//
// Their kernel is in elementwise-inl.h, their macro in elementwise.bzl: an
// operator is under 60 lines in all (ops/relu).

#include <string>
#include <utility>
#include <vector>

#include "ops/lib/reference.h"

namespace optrail::ops {

class ElementwiseOperator : public FloatOperator {
 public:
  // `flop`: per element, each function counting one.
  explicit ElementwiseOperator(std::string name, double flop = 1)
      : FloatOperator(std::move(name), {"n"}), flop_(flop) {}

  // f(x) in double precision.
  virtual double Apply(const proto::Shape& shape, double x) const = 0;

  // Values at which f changes its ways.
  virtual std::vector<double> hard_values() const { return {}; }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{
        {"x", type, {n}, Role::kInput, 0, -4, 4, hard_values()},
        {"y", type, {n}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    return flop_ * static_cast<double>(shape.dims(0).value());
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    std::vector<double> y;
    y.reserve(operands[0].size());
    for (const double x : operands[0]) y.push_back(Apply(shape, x));
    return {std::move(y)};
  }

 private:
  const double flop_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_ELEMENTWISE_ELEMENTWISE_H_
