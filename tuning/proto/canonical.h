#ifndef OPTRAIL_TUNING_PROTO_CANONICAL_H_
#define OPTRAIL_TUNING_PROTO_CANONICAL_H_

// The canonical text of configs, shapes and tasks: what keys, hashes, command
// lines and reports show. Parsing accepts exactly what formatting produces,
// plus spaces around separators.
//
//   config  "algorithm=online,unroll=2"       sorted by knob
//   shape   "m=512,n=512,k=64/f32"            dimensions in declared order
//           "n=8,c=64/padding=1,stride=2/f16" attributes, sorted by name
//   task    "matmul/cpu/m=512,n=512,k=64/f32/threads=1/hot"
//           "conv2d/cuda:cudnn/n=8,c=64/padding=1/f16/threads=1/hot/graph"
//
// What is absent is not written: an operator's default attributes, the backend
// of the device kind itself, a launch mode, one device. So the texts of before
// there were such things are still the same.
//
// It is not the place where a config is checked against a space.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "google/protobuf/repeated_field.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// "true"/"false" for booleans, decimal for integers, the name for variants.
std::string CanonicalText(const proto::KnobValue& value);

std::string CanonicalText(const proto::Config& config);

// "algorithm=online,unroll=2" in any order. A value is an integer, true, false
// or a variant's name. InvalidArgument names the knob and what was expected.
absl::StatusOr<proto::Config> ParseConfig(absl::string_view text);

std::string CanonicalText(const proto::Shape& shape);

// "m=512,n=512/f32", "m=512/bf16+bf16+f32" with a type per operand, or with
// attributes in any order "m=512/causal=1/f32".
absl::StatusOr<proto::Shape> ParseShape(absl::string_view text);

using Attributes = google::protobuf::RepeatedPtrField<proto::Attribute>;

// "padding=1,stride=1", sorted by name; "" for none.
std::string CanonicalText(const Attributes& attributes);
// A value is a decimal integer or a variant's name; "true" and "false" are
// neither (use 1 and 0), so that a text has one reading. Sorted by name.
absl::StatusOr<Attributes> ParseAttributes(absl::string_view text);
// The value's text alone.
std::string ValueText(const proto::Attribute& attribute);
bool SameValue(const proto::Attribute& a, const proto::Attribute& b);
// nullptr if there is none of that name.
const proto::Attribute* FindAttribute(const Attributes& attributes,
                                      absl::string_view name);

// The value of a dimension; nullopt if the shape has none of that name.
absl::optional<int64_t> DimValue(const proto::Shape& shape,
                                 absl::string_view name);

// "f32"; "unspecified" for the zero value.
std::string DataTypeName(proto::DataType type);
absl::StatusOr<proto::DataType> ParseDataType(absl::string_view name);
int DataTypeBytes(proto::DataType type);

// "cpu", "cuda"; "77" for a kind of another workspace, which has a number that
// this code does not list. (What such a kind is called is its device's affair
// and no part of a key: keys don't depend on what is linked.)
std::string DeviceName(proto::DeviceKind device);
absl::StatusOr<proto::DeviceKind> ParseDevice(absl::string_view name);
std::string CacheModeName(proto::CacheMode mode);  // "hot", "cold"
absl::StatusOr<proto::CacheMode> ParseCacheMode(absl::string_view name);
std::string OutcomeName(proto::Outcome outcome);  // "OK", "TIMED_OUT"

// "stream", "graph"; the number of a newer writer's.
std::string LaunchModeName(proto::LaunchMode mode);
absl::StatusOr<proto::LaunchMode> ParseLaunchMode(absl::string_view name);

// [a-z][a-z0-9_]*, neither "best" nor "all" nor longer than 64.
bool IsBackendName(absl::string_view name);

// "cpu", or "cpu:openblas" where the backend is not the device kind's own.
std::string DeviceAndBackend(proto::DeviceKind device,
                             absl::string_view backend);

// What is optimised, "joules:min,time:min@2<=1000" with weights and limits; ""
// for time alone, which is what an absent objective stands for.
std::string ObjectivesText(
    const google::protobuf::RepeatedPtrField<proto::Objective>& objectives);

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
