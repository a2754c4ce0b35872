#ifndef OPTRAIL_OPS_CORE_INPUT_FILE_H_
#define OPTRAIL_OPS_CORE_INPUT_FILE_H_

// An operand's values from a file, for what random numbers do not stand for:
// recorded activations, the indices of a real batch.
//
//   numpy.save("ops/lookup/tokens.npy", tokens)          # Python
//   OperandSpec{.name = "ids", .data_type = proto::I32, .dims = {n},
//               .index_limit = rows, .file = "ops/lookup/tokens.npy"}
//
// The format is NumPy's .npy (versions 1 and 2): little-endian floats of 2, 4
// and 8 bytes, integers of 1 to 8 bytes, booleans. Its shape does not matter:
// an operand takes consecutive values from a place that the seed chooses, and
// goes on at the beginning, so that any shape can be filled and seeds differ.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optrail::ops {

// Relative paths are those of the workspace: below the current folder, that of
// `bazel run` or the runfiles of a test. NotFound names where it was looked
// for; InvalidArgument says what of the file cannot be read.
absl::StatusOr<std::vector<double>> ReadInputFile(const std::string& path);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_INPUT_FILE_H_
