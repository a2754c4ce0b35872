#ifndef OPTRAIL_OPS_LIB_REFERENCE_H_
#define OPTRAIL_OPS_LIB_REFERENCE_H_

// References of operators share this: products in double precision, on all
// cores where that is worth the threads, and tolerances of fewer bits.
//
//   std::vector<double> c = ReferenceProduct(m, n, k, a, b);

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"

namespace optrail::ops {

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
