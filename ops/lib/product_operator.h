#ifndef OPTRAIL_OPS_LIB_PRODUCT_OPERATOR_H_
#define OPTRAIL_OPS_LIB_PRODUCT_OPERATOR_H_

// The definition that matmul and batched_matmul share: c[m, n] = a[m, k] *
// b[k, n], one of them or a batch.
//
//   class Matmul : public ProductOperator {
//    public:
//     Matmul() : ProductOperator("matmul", /*batched=*/false) {}
//   };
//
// A batch may store b as [batch, n, k] (transposed=b) or a as [batch, k, m]
// (transposed=a).

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/lib/reference.h"

namespace optrail::ops {

class ProductOperator : public FloatOperator {
 public:
  ProductOperator(std::string name, bool batched)
      : FloatOperator(std::move(name),
                      batched ? std::vector<std::string>{"batch", "m", "n", "k"}
                              : std::vector<std::string>{"m", "n", "k"}),
        batched_(batched) {}

  std::vector<AttributeSpec> attributes() const override {
    if (!batched_) return {};
    return {VariantAttribute("transposed", "none", {"none", "a", "b"})};
  }

  // With 16 bits inputs are normal, as activations and weights roughly are:
  // speed is bound by power there.
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    std::vector<OperandSpec> operands = {
        {"a", type, {s.m, s.k}, Role::kInput},
        {"b", type, {s.k, s.n}, Role::kInput},
        {"c", type, {s.m, s.n}, Role::kOutput}};
    if (s.transposed == "a")
      std::swap(operands[0].dims[0], operands[0].dims[1]);
    if (s.transposed == "b")
      std::swap(operands[1].dims[0], operands[1].dims[1]);
    operands[0].normal = operands[1].normal = type != proto::F32;
    for (OperandSpec& operand : operands) {
      if (batched_) operand.dims.insert(operand.dims.begin(), s.batch);
    }
    return operands;
  }

  double Flop(const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) *
           static_cast<double>(s.n) * static_cast<double>(s.k);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    return {Products(SizeOf(shape), operands[0], operands[1], {}, 0)};
  }

  bool HasPartialReference(const proto::Shape& shape) const override {
    return true;
  }

  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    Size s = SizeOf(shape);
    const int64_t i = row / s.m, at = row % s.m;
    std::vector<double> a(s.k);
    for (int64_t p = 0; p < s.k; ++p) {
      a[p] = operands[0][i * s.m * s.k +
                         (s.transposed == "a" ? p * s.m + at : at * s.k + p)];
    }
    s.batch = s.m = 1;
    if (s.transposed == "a") s.transposed = "none";
    return Products(
        s, a,
        absl::MakeConstSpan(operands[1]).subspan(i * s.k * s.n, s.k * s.n), {},
        0);
  }

  // a (b x)
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const override {
    return Products(SizeOf(shape), operands[0], operands[1], x, count);
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
    int64_t batch, m, n, k;
    std::string transposed;
  };
  // Times `x` [n][count], unless that is empty.
  static std::vector<double> Products(const Size& s,
                                      absl::Span<const double> all_a,
                                      absl::Span<const double> all_b,
                                      absl::Span<const double> x,
                                      int64_t count) {
    const int64_t columns = x.empty() ? s.n : count;
    std::vector<double> c(s.batch * s.m * columns);
    const auto compute = [&](int64_t i) {
      absl::Span<const double> a = all_a.subspan(i * s.m * s.k, s.m * s.k);
      absl::Span<const double> b = all_b.subspan(i * s.k * s.n, s.k * s.n);
      std::vector<double> turned, times_x;
      if (s.transposed == "a") a = turned = Transposed(s.k, s.m, a);
      if (s.transposed == "b") b = turned = Transposed(s.n, s.k, b);
      if (!x.empty()) b = times_x = ReferenceProduct(s.k, count, s.n, b, x);
      const std::vector<double> product =
          ReferenceProduct(s.m, columns, s.k, a, b);
      std::copy(product.begin(), product.end(), &c[i * s.m * columns]);
    };
    // One product uses all cores by itself.
    if (s.batch == 1) {
      compute(0);
    } else {
      ForEachReference(s.batch,
                       static_cast<double>(c.size()) * static_cast<double>(s.k),
                       compute);
    }
    return c;
  }
  Size SizeOf(const proto::Shape& shape) const {
    const int m = batched_ ? 1 : 0;
    const auto dim = [&](int i) { return shape.dims(i).value(); };
    return {batched_ ? dim(0) : 1, dim(m), dim(m + 1), dim(m + 2),
            batched_ ? VariantAttributeOf(*this, shape, "transposed") : "none"};
  }

  const bool batched_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_PRODUCT_OPERATOR_H_
