// c[i] = a[i] * b[i] for i < batch, c [batch, m, n]. transposed=b stores b as
// [batch, n, k] and transposed=a stores a as [batch, k, m]: scores of attention
// and, with a batch of one, the backward products of a layer.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class BatchedMatmul : public Operator {
 public:
  std::string name() const override { return "batched_matmul"; }
  std::vector<std::string> dims() const override {
    return {"batch", "m", "n", "k"};
  }
  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("transposed", "none", {"none", "a", "b"})};
  }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  // With 16 bits inputs are normal, as matmul's.
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    std::vector<int64_t> a = {s.batch, s.m, s.k};
    std::vector<int64_t> b = {s.batch, s.k, s.n};
    if (s.transposed == "a") std::swap(a[1], a[2]);
    if (s.transposed == "b") std::swap(b[1], b[2]);
    const proto::DataType type = shape.data_types(0);
    OperandSpec of_a{"a", type, std::move(a), Role::kInput};
    OperandSpec of_b{"b", type, std::move(b), Role::kInput};
    of_a.normal = of_b.normal = type != proto::F32;
    return std::vector<OperandSpec>{
        std::move(of_a),
        std::move(of_b),
        {"c", type, {s.batch, s.m, s.n}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) *
           static_cast<double>(s.n) * static_cast<double>(s.k);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    return {Products(SizeOf(shape), operands, {}, 0)};
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
    const absl::Span<const double> all_b = operands[1];
    const std::vector<std::vector<double>> one = {
        std::move(a),
        {all_b.begin() + i * s.k * s.n, all_b.begin() + (i + 1) * s.k * s.n}};
    s.batch = s.m = 1;
    if (s.transposed == "a") s.transposed = "none";
    return Products(s, one, {}, 0);
  }

  // a (b x)
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const override {
    return Products(SizeOf(shape), operands, x, count);
  }

  // The tolerance of matmul.
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
  static std::vector<double> Products(
      const Size& s, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int64_t count) {
    const int64_t columns = x.empty() ? s.n : count;
    std::vector<double> c(s.batch * s.m * columns);
    const auto compute = [&](int64_t i) {
      const auto of = [&](int operand, int64_t size) {
        return absl::MakeConstSpan(operands[operand]).subspan(i * size, size);
      };
      absl::Span<const double> a = of(0, s.m * s.k);
      absl::Span<const double> b = of(1, s.k * s.n);
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
    return {shape.dims(0).value(), shape.dims(1).value(), shape.dims(2).value(),
            shape.dims(3).value(),
            VariantAttributeOf(*this, shape, "transposed")};
  }
};

OPTRAIL_REGISTER_OPERATOR(BatchedMatmul)

}  // namespace
}  // namespace optrail::ops
