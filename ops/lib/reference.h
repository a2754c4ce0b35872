#ifndef OPTRAIL_OPS_LIB_REFERENCE_H_
#define OPTRAIL_OPS_LIB_REFERENCE_H_

// References of operators share this: products in double precision, on all
// cores where that is worth the threads, and tolerances of fewer bits.
//
//   std::vector<double> c = ReferenceProduct(m, n, k, a, b);

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"

namespace optrail::ops {

// An operator on f32, f16 or bf16.
class FloatOperator : public Operator {
 public:
  FloatOperator(std::string name, std::vector<std::string> dims)
      : name_(std::move(name)), dims_(std::move(dims)) {}

  std::string name() const override { return name_; }
  std::vector<std::string> dims() const override { return dims_; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

 private:
  const std::string name_;
  const std::vector<std::string> dims_;
};

// c[m, n] = a[m, k] * b[k, n], row-major.
std::vector<double> ReferenceProduct(int64_t m, int64_t n, int64_t k,
                                     absl::Span<const double> a,
                                     absl::Span<const double> b);

// x[rows, cols] as [cols, rows].
std::vector<double> Transposed(int64_t rows, int64_t cols,
                               absl::Span<const double> x);

// compute(i) for i < count, on all cores if all of them together take more
// multiplications than starting threads is worth.
void ForEachReference(int64_t count, double multiplications,
                      absl::FunctionRef<void(int64_t)> compute);

// The tolerance of what is computed in f32 to within `computed` and stored as
// `type`: fewer bits round it once more.
Tolerance Rounded(const Tolerance& computed, proto::DataType type);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_REFERENCE_H_
