// c[i] = a[i] * b[i] for i < batch, c [batch, m, n]. transposed=b stores b as
// [batch, n, k] and transposed=a stores a as [batch, k, m]: scores of attention
// and, with a batch of one, the backward products of a layer.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

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
    const Size s = SizeOf(shape);
    std::vector<double> c(s.batch * s.m * s.n);
    for (int64_t i = 0; i < s.batch * s.m; ++i) {
      const int64_t batch = i / s.m;
      const int64_t row = i % s.m;
      const double* const b = &operands[1][batch * s.k * s.n];
      for (int64_t p = 0; p < s.k; ++p) {
        const double a = s.transposed == "a"
                             ? operands[0][(batch * s.k + p) * s.m + row]
                             : operands[0][i * s.k + p];
        for (int64_t j = 0; j < s.n; ++j) {
          c[i * s.n + j] +=
              a * (s.transposed == "b" ? b[j * s.k + p] : b[p * s.n + j]);
        }
      }
    }
    return {std::move(c)};
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
  Size SizeOf(const proto::Shape& shape) const {
    return {shape.dims(0).value(), shape.dims(1).value(), shape.dims(2).value(),
            shape.dims(3).value(),
            VariantAttributeOf(*this, shape, "transposed")};
  }
};

OPTRAIL_REGISTER_OPERATOR(BatchedMatmul)

}  // namespace
}  // namespace optrail::ops
