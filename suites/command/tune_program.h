#ifndef OPTRAIL_SUITES_COMMAND_TUNE_PROGRAM_H_
#define OPTRAIL_SUITES_COMMAND_TUNE_PROGRAM_H_

// Names the program that tunes the operator of a NAME_bench or NAME_tune
// binary, for hints. `optrail tune` knows the operators that it was linked
// with, and somebody else's is not among them.
//
//   TuneProgramBeside(OwnPath())  // "bazel run //ops/softmax:softmax_tune --"

#include <string>

#include "absl/strings/string_view.h"

namespace optrail::suites {

// The file that this process runs; "" where that can't be read.
std::string OwnPath();

// The NAME_tune target of the package that built the binary at `path`, ready
// for flags behind it. Outside of Bazel's output folder, the path of NAME_tune
// beside it.
std::string TuneProgramBeside(absl::string_view path);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_TUNE_PROGRAM_H_
