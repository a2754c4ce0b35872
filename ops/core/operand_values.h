#ifndef OPTRAIL_OPS_CORE_OPERAND_VALUES_H_
#define OPTRAIL_OPS_CORE_OPERAND_VALUES_H_

// The values of operands: random ones of a seed, or recorded ones of a file.
//
//   const std::vector<double> values = RandomValues(spec, seed, Values::kHard);
//
// They are what the operand's data type represents exactly, and made of the
// seed alone, whatever the number of threads. Safe from any thread.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"

namespace optrail::ops {

// The values that inputs are made of. Typical values are what is timed:
// denormals, for one, slow many processors down. Hard ones have the operand's
// hard values among them (and few denormals, however many elements there are),
// and are what results are checked with: a kernel that is right within (-1, 1)
// only, or for values that all differ, is wrong. Zeros are never checked: a
// product of zeros takes less energy, which shows how much a reading depends on
// its inputs.
enum class Values { kTypical, kHard, kZeros };

// elements() values that the operand's data type represents exactly, made of
// `seed` alone: see OperandSpec for their distribution. One in eight hard ones
// is special.
std::vector<double> RandomValues(const OperandSpec& spec, uint64_t seed,
                                 Values values = Values::kTypical);

// The same of recorded data (OperandSpec::file), in its stored layout from a
// place that `seed` chooses.
std::vector<double> RecordedValues(const OperandSpec& spec,
                                   absl::Span<const double> recorded,
                                   uint64_t seed,
                                   Values values = Values::kTypical);

// A call writes the operand.
inline bool IsResult(const OperandSpec& spec) {
  return spec.role != Role::kInput;
}

// RandomValues, encoded into size_bytes() bytes: each piece while it is in a
// cache.
void RandomBytes(const OperandSpec& spec, uint64_t seed, Values values,
                 char* bytes);

// elements() values, encoded into size_bytes() bytes.
void EncodeOperand(const OperandSpec& spec, absl::Span<const double> values,
                   char* bytes);

// The values of the operand's file. InvalidArgument names one that is beyond
// the operand's limit.
absl::StatusOr<std::vector<double>> ReadRecorded(const OperandSpec& spec);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_OPERAND_VALUES_H_
