// c[m, n] = a[m, k] * b[k, n]: the operator bound by arithmetic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/parallel_for.h"
#include "ops/core/data_type.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

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
    return {Product(size, operands[0], operands[1])};
  }

  // Columns of b may be added up before the product as well as after it.
  std::vector<double> FoldedReference(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> weights, int64_t run) const override {
    Size size = SizeOf(shape);
    const int64_t runs = (size.n + run - 1) / run;
    std::vector<double> folded(size.k * runs);
    ParallelFor(size.k, 0, [&](int64_t p) {
      for (int64_t j = 0; j < size.n; ++j) {
        folded[p * runs + j / run] += weights[j] * operands[1][p * size.n + j];
      }
    });
    size.n = runs;
    return Product(size, operands[0], folded);
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
  static std::vector<double> Product(const Size& size,
                                     absl::Span<const double> a,
                                     absl::Span<const double> b) {
    // Blocks of b and rows of c stay in cache: 1024^3 takes half a second on
    // one core.
    constexpr int64_t kBlockRows = 32;
    constexpr int64_t kBlockColumns = 512;
    constexpr int64_t kBlockDepth = 64;
    std::vector<double> c(size.m * size.n);
    const auto compute_rows = [&](int64_t block) {
      const int64_t i0 = block * kBlockRows;
      const int64_t i_end = std::min(i0 + kBlockRows, size.m);
      for (int64_t j0 = 0; j0 < size.n; j0 += kBlockColumns) {
        const int64_t columns = std::min(kBlockColumns, size.n - j0);
        for (int64_t p0 = 0; p0 < size.k; p0 += kBlockDepth) {
          const int64_t p_end = std::min(p0 + kBlockDepth, size.k);
          for (int64_t i = i0; i < i_end; ++i) {
            double* c_row = &c[i * size.n + j0];
            for (int64_t p = p0; p < p_end; ++p) {
              const double a_ip = a[i * size.k + p];
              const double* b_row = &b[p * size.n + j0];
              for (int64_t j = 0; j < columns; ++j) c_row[j] += a_ip * b_row[j];
            }
          }
        }
      }
    };
    // Threads take longer to start than small products.
    constexpr double kParallelAbove = 1e8;
    const double work = static_cast<double>(size.m) *
                        static_cast<double>(size.n) *
                        static_cast<double>(size.k);
    ParallelFor((size.m + kBlockRows - 1) / kBlockRows,
                work > kParallelAbove ? 0 : 1, compute_rows);
    return c;
  }
  static Size SizeOf(const proto::Shape& shape) {
    return {shape.dims(0).value(), shape.dims(1).value(),
            shape.dims(2).value()};
  }
};

OPTRAIL_REGISTER_OPERATOR(Matmul)

}  // namespace
}  // namespace optrail::ops
