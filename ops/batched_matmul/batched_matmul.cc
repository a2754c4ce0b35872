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

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    std::vector<int64_t> a = {s.batch, s.m, s.k};
    std::vector<int64_t> b = {s.batch, s.k, s.n};
    if (s.transposed == "a") std::swap(a[1], a[2]);
    if (s.transposed == "b") std::swap(b[1], b[2]);
    return std::vector<OperandSpec>{
        {"a", proto::F32, std::move(a), Role::kInput},
        {"b", proto::F32, std::move(b), Role::kInput},
        {"c", proto::F32, {s.batch, s.m, s.n}, Role::kOutput},
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
    return {Products(SizeOf(shape), operands, {}, 1)};
  }

  std::vector<double> FoldedReference(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> weights, int64_t run) const override {
    return Products(SizeOf(shape), operands, weights, run);
  }

  // As of matmul.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {4.0 * static_cast<double>(SizeOf(shape).k) * 0x1.0p-24, 0};
  }

 private:
  struct Size {
    int64_t batch, m, n, k;
    std::string transposed;
  };
  // Folded if there are weights.
  static std::vector<double> Products(
      const Size& s, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> weights, int64_t run) {
    const int64_t columns = weights.empty() ? s.n : (s.n + run - 1) / run;
    std::vector<double> c(s.batch * s.m * columns);
    const auto compute = [&](int64_t i) {
      const auto of = [&](int operand, int64_t size) {
        return absl::MakeConstSpan(operands[operand]).subspan(i * size, size);
      };
      absl::Span<const double> a = of(0, s.m * s.k);
      absl::Span<const double> b = of(1, s.k * s.n);
      std::vector<double> turned, folded;
      if (s.transposed == "a") a = turned = Transposed(s.k, s.m, a);
      if (s.transposed == "b") b = turned = Transposed(s.n, s.k, b);
      if (!weights.empty()) {
        b = folded = FoldColumns(s.k, s.n, b, weights, run);
      }
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
