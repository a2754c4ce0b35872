#ifndef OPTRAIL_TUNING_PROTO_CANONICAL_H_
#define OPTRAIL_TUNING_PROTO_CANONICAL_H_

// The canonical text of configs, shapes and tasks: what keys, hashes, command
// lines and reports show. Parsing accepts exactly what formatting produces,
// plus spaces around separators.
//
//   config  "algorithm=online,unroll=2"       sorted by knob
//   shape   "m=512,n=512,k=64/f32"            dimensions in declared order
//   task    "matmul/cpu/m=512,n=512,k=64/f32/threads=1/hot"
//
// It is not the place where a config is checked against a space.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// "true"/"false" for booleans, decimal for integers, the name for variants.
std::string CanonicalText(const proto::KnobValue& value);

std::string CanonicalText(const proto::Config& config);

// "algorithm=online,unroll=2" in any order. A value is an integer, true, false
// or a variant's name. InvalidArgument names the knob and what was expected.
absl::StatusOr<proto::Config> ParseConfig(absl::string_view text);

std::string CanonicalText(const proto::Shape& shape);

// "m=512,n=512/f32", or "m=512/bf16+bf16+f32" with a type per operand.
absl::StatusOr<proto::Shape> ParseShape(absl::string_view text);

// The value of a dimension; nullopt if the shape has none of that name.
absl::optional<int64_t> DimValue(const proto::Shape& shape,
                                 absl::string_view name);

// "f32"; "unspecified" for the zero value.
std::string DataTypeName(proto::DataType type);
absl::StatusOr<proto::DataType> ParseDataType(absl::string_view name);
int DataTypeBytes(proto::DataType type);

std::string DeviceName(proto::DeviceKind device);  // "cpu", "cuda"
absl::StatusOr<proto::DeviceKind> ParseDevice(absl::string_view name);
std::string CacheModeName(proto::CacheMode mode);  // "hot", "cold"
absl::StatusOr<proto::CacheMode> ParseCacheMode(absl::string_view name);
std::string OutcomeName(proto::Outcome outcome);  // "OK", "TIMED_OUT"

// Whether an outcome is a failure of the code: contended and raced-out
// measurements say nothing of it.
bool IsFailure(proto::Outcome outcome);
// The order in which outcomes count where there are several, worst highest:
// wrong results, then other failures, then what says nothing, then OK. Outcomes
// of newer writers are failures.
int Severity(proto::Outcome outcome);

// What is tuned, without kernel and hardware: for people and file names.
std::string TaskText(const proto::Task& task);

// The whole key of a trial: task, kernel, hardware, canonical config.
std::string TrialKey(const proto::Task& task, const proto::Config& config);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_CANONICAL_H_
