#ifndef OPTRAIL_OPS_CORE_COMPARE_H_
#define OPTRAIL_OPS_CORE_COMPARE_H_

// A result held against its reference, element by element.
//
//   const CompareResult compared =
//       Compare(proto::F32, values, expected, {1e-5, 1e-6});
//   if (!compared.ok()) ... compared.first_wrong_index ...

#include <cstdint>

#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

struct CompareResult {
  // Largest |value - expected| / (absolute + relative * |expected|); infinite
  // for a value that is NaN, infinite or wrong under a tolerance of zero.
  double max_error_in_tolerances = 0;
  int64_t wrong_count = 0;
  // The first element whose error exceeds one tolerance; -1 if none does.
  int64_t first_wrong_index = -1;
  double first_wrong_value = 0;
  double first_wrong_expected = 0;

  bool ok() const { return wrong_count == 0; }
};

// Compares `expected.size()` elements of type `type` at `values` with
// `expected`. NaN is right only where NaN is expected, infinity only where the
// same infinity is expected.
CompareResult Compare(proto::DataType type, const void* values,
                      absl::Span<const double> expected, Tolerance tolerance);

// Adds what another part of the same result shows.
void Take(const CompareResult& other, CompareResult* result);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_COMPARE_H_
