#ifndef OPTRAIL_OPS_CORE_DATA_TYPE_H_
#define OPTRAIL_OPS_CORE_DATA_TYPE_H_

// Converts between doubles, in which references are computed, and the data
// types in which kernels compute.
//
//   EncodeValues(proto::BF16, values, buffer);     // rounds to nearest even
//   DecodeValues(proto::BF16, buffer, 8, values);  // exact
//
// It is for checking results, not for fast paths.

#include <cstdint>

#include "absl/types/span.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// False for types that cannot be converted yet (8-bit floats).
bool IsConvertible(proto::DataType type);

bool IsFloat(proto::DataType type);

// What rounding to nearest does to a result: at most `relative` of it, and
// `absolute` where results are denormal. Zero for integers.
struct Rounding {
  double relative = 0;
  double absolute = 0;
};
Rounding RoundingOf(proto::DataType type);

// Writes values.size() elements of `type`. Values outside an integer type's
// range are clamped to it. Stops the process if `type` is not convertible.
void EncodeValues(proto::DataType type, absl::Span<const double> values,
                  void* out);

// Reads out.size() elements of `type`, the first one at index `begin`.
void DecodeValues(proto::DataType type, const void* in, int64_t begin,
                  absl::Span<double> out);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_DATA_TYPE_H_
