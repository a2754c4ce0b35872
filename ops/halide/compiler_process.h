#ifndef OPTRAIL_OPS_HALIDE_COMPILER_PROCESS_H_
#define OPTRAIL_OPS_HALIDE_COMPILER_PROCESS_H_

// The compiler of an operator's algorithm, a program beside this one that is
// started when it is first asked, and kept (compiler_main.cc).
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::string code,
//       AskCompiler("optrail/ops/matmul/matmul_halide_compiler", request));

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::halide {

// Finds the program by its path among Bazel's runfiles. Unavailable if it is
// not beside this program.
absl::StatusOr<std::string> FindCompiler(absl::string_view runfile);

// InvalidArgument with the compiler's words: it refuses; Internal: it ended.
absl::StatusOr<std::string> AskCompiler(absl::string_view runfile,
                                        const std::string& request);

}  // namespace optrail::halide

#endif  // OPTRAIL_OPS_HALIDE_COMPILER_PROCESS_H_
