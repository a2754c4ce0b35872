// c[m, n] = a[m, k] * b[k, n]: the operator bound by arithmetic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Matmul : public Operator {
 public:
  std::string name() const override { return "matmul"; }
  std::vector<std::string> dims() const override { return {"m", "n", "k"}; }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size size = SizeOf(shape);
    return std::vector<OperandSpec>{
        {"a", proto::F32, {size.m, size.k}, Role::kInput},
        {"b", proto::F32, {size.k, size.n}, Role::kInput},
        {"c", proto::F32, {size.m, size.n}, Role::kOutput},
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
    // Blocks of b and rows of c stay in cache: 1024^3 takes half a second.
    constexpr int64_t kBlockColumns = 512;
    constexpr int64_t kBlockDepth = 64;
    const Size size = SizeOf(shape);
    std::vector<double> c(size.m * size.n);
    for (int64_t j0 = 0; j0 < size.n; j0 += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, size.n - j0);
      for (int64_t p0 = 0; p0 < size.k; p0 += kBlockDepth) {
        const int64_t p_end = std::min(p0 + kBlockDepth, size.k);
        for (int64_t i = 0; i < size.m; ++i) {
          double* c_row = &c[i * size.n + j0];
          for (int64_t p = p0; p < p_end; ++p) {
            const double a = operands[0][i * size.k + p];
            const double* b_row = &operands[1][p * size.n + j0];
            for (int64_t j = 0; j < columns; ++j) c_row[j] += a * b_row[j];
          }
        }
      }
    }
    return {std::move(c)};
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
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {4.0 * static_cast<double>(SizeOf(shape).k) * 0x1.0p-24, 0};
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
